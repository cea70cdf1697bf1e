// Package mounts checks the remedies for storage that is no local disk: each is followed on a real FUSE file system
// that answers late, and the gain is compared with what was predicted.
package mounts
