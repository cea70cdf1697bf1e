package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"
)

// interpreters maps programs that run code on their command line to that flag.
var interpreters = map[string]byte{
	"bash": 'c', "dash": 'c', "ksh": 'c', "sh": 'c', "zsh": 'c', "python": 'c',
	"node": 'e', "perl": 'e', "ruby": 'e', "Rscript": 'e', "julia": 'e',
}

// endings are those of scripts of other interpreters than Python and shells. Launchers such as torchrun and srun take
// only the latter two, so the others count after their interpreter alone.
var endings = map[string][]string{
	"node": {".js", ".mjs", ".cjs", ".ts"}, "perl": {".pl"}, "ruby": {".rb"}, "Rscript": {".R", ".r"}, "julia": {".jl"},
}

// NameOf names a command line after its script, Python module, or program. Code on the command line is named by a
// script in it, or else by a hash: all programs of "bash -c" would have one name, and one baseline.
func NameOf(argv []string) string {
	name, program := "", "" // program is the interpreter whose arguments follow
	for i, arg := range argv {
		if known := interpreter(arg); known != "" {
			program = known
			continue
		}
		if program != "" && i+1 < len(argv) && isCodeFlag(arg, interpreters[program]) {
			return nameOfCode(program, arg, argv[i+1])
		}
		if i > 0 && (isScript(arg) || slices.Contains(endings[program], filepath.Ext(arg))) {
			return filepath.Base(arg)
		}
		if program == "python" && arg == "-m" && i+1 < len(argv) && name == "" {
			name = argv[i+1] // of the module, unless a script follows, as after torch.distributed.run
		}
	}
	if name != "" {
		return name
	}
	return filepath.Base(argv[0])
}

// interpreter returns the name of an interpreter without its version, as of /usr/bin/python3.11, or "".
func interpreter(path string) string {
	name := strings.TrimRight(filepath.Base(path), "0123456789.")
	if _, known := interpreters[name]; !known {
		return ""
	}
	return name
}

func isScript(word string) bool {
	return strings.HasSuffix(word, ".py") || strings.HasSuffix(word, ".sh")
}

// isCodeFlag reports whether code follows an argument, such as -c, or -lc of a shell.
func isCodeFlag(arg string, flag byte) bool {
	return len(arg) >= 2 && arg[0] == '-' && arg[1] != '-' && arg[len(arg)-1] == flag
}

// codeBreaks end a word in code.
const codeBreaks = " \t\n;&|()<>\"'`,="

func nameOfCode(program, flag, code string) string {
	words := strings.FieldsFunc(code, func(r rune) bool { return strings.ContainsRune(codeBreaks, r) })
	for _, word := range words {
		if isScript(word) {
			return filepath.Base(word)
		}
	}
	sum := sha256.Sum256([]byte(code))
	return program + " " + flag + " " + hex.EncodeToString(sum[:4])
}
