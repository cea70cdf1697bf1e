package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// verb is a verb of package fmt.
var verb = regexp.MustCompile(`%[-+# 0]*[\d.*]*(\[\d+\])?[a-zA-Z%]`)

// bareFailure reports whether a call of testing.T reports values without a word about them. A reader of a failed test
// needs to know what was got and what was wanted. An error alone is fine: it explains itself.
func bareFailure(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	receiver, ok := method.X.(*ast.Ident)
	if !ok || receiver.Name != "t" && receiver.Name != "b" && receiver.Name != "f" {
		return false
	}
	switch method.Sel.Name {
	case "Error", "Fatal":
		return len(call.Args) > 1 && !anyWord(call.Args) || !anyWord(call.Args) && !isError(call.Args[0])
	case "Errorf", "Fatalf":
		return !anyWord(call.Args[:1])
	}
	return false
}

// anyWord reports whether a literal among the arguments holds a word.
func anyWord(args []ast.Expr) bool {
	found := false
	for _, arg := range args {
		ast.Inspect(arg, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			found = found || err == nil && strings.ContainsAny(verb.ReplaceAllString(text, ""), letters)
			return true
		})
	}
	return found
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// isError reports whether an expression is an error by its name: err, loadErr, errs[0], a call of Err().
func isError(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return strings.HasPrefix(strings.ToLower(e.Name), "err") || strings.HasSuffix(e.Name, "Err")
	case *ast.CallExpr:
		return isError(e.Fun)
	case *ast.SelectorExpr:
		return isError(e.Sel)
	case *ast.IndexExpr:
		return isError(e.X)
	}
	return false
}
