//go:build !unix

package check

import "io/fs"

func othersOwn(string) bool { return false }

func mayWrite(string) bool { return true }

func mayConnect(fs.FileInfo) string { return "its owner alone may" }
