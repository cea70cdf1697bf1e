// Command picture runs a program and draws its standard output as an SVG picture of a terminal, for the README:
//
//	hack/tool.sh picture -o docs/images/demo.svg -- build/stallspan demo
//
// The same output always makes the same picture. It follows the reader's choice of a light or a dark page.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"html"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Sizes in pixels. A monospace glyph is 0.6 times as wide as its font is high.
const (
	fontSize   = 14
	glyphWidth = 0.6 * fontSize
	lineHeight = 20
	margin     = 20
	titleBar   = 36
)

const style = `<style>
.screen { fill: #f6f8fa; stroke: #d0d7de; }
.dot { fill: #d0d7de; }
text { fill: #1f2328; font: ` + "%dpx" + ` ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.dim { fill: #656d76; }
.good { fill: #1a7f37; }
.cause { fill: #0969da; }
.alarm { fill: #cf222e; font-weight: bold; }
@media (prefers-color-scheme: dark) {
.screen { fill: #161b22; stroke: #30363d; }
.dot { fill: #484f58; }
text { fill: #e6edf3; }
.dim { fill: #8d96a0; }
.good { fill: #3fb950; }
.cause { fill: #58a6ff; }
.alarm { fill: #f85149; }
}
</style>
`

// marked are the words with a color of their own.
var marked = regexp.MustCompile(`\bSLOW\b|\b(?:storage|cpu|gpu)_bound\b|\bmixed\b|\bTry:|^window .*|^\$ .*`)

func main() {
	log.SetFlags(0)
	out := flag.String("o", "", "the `file` to write")
	flag.Parse()
	if *out == "" || flag.NArg() == 0 {
		log.Fatal("usage: picture -o FILE -- COMMAND [ARGUMENT...]")
	}
	command := exec.Command(flag.Arg(0), flag.Args()[1:]...)
	command.Stderr = os.Stderr
	text, err := command.Output()
	if err != nil {
		log.Fatalf("%s: %v", flag.Arg(0), err)
	}
	shown := "$ " + strings.Join(append([]string{filepath.Base(flag.Arg(0))}, flag.Args()[1:]...), " ")
	if err := os.WriteFile(*out, draw(shown+"\n"+string(text)), 0o644); err != nil {
		log.Fatal(err)
	}
}

// draw returns the picture of a screen with this text.
func draw(text string) []byte {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	columns := 0
	for _, line := range lines {
		columns = max(columns, len([]rune(line)))
	}
	width := 2*margin + int(glyphWidth*float64(columns)+1)
	height := titleBar + lineHeight*len(lines) + margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(strings.TrimPrefix(lines[0], "$ ")))
	fmt.Fprintf(&b, style, fontSize)
	fmt.Fprintf(&b, `<rect class="screen" x="0.5" y="0.5" width="%d" height="%d" rx="8"/>`+"\n", width-1, height-1)
	for i := range 3 {
		fmt.Fprintf(&b, `<circle class="dot" cx="%d" cy="%d" r="5"/>`+"\n", margin+16*i, titleBar/2)
	}
	for i, line := range lines {
		if line == "" {
			continue
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" xml:space="preserve" textLength="%.1f">%s</text>`+"\n",
			margin, titleBar+lineHeight*(i+1)-6, glyphWidth*float64(len([]rune(line))), colored(line))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// colored is a line with the colors of its words.
func colored(line string) string {
	var b strings.Builder
	at := 0
	for _, m := range marked.FindAllStringIndex(line, -1) {
		word := line[m[0]:m[1]]
		fmt.Fprintf(&b, `%s<tspan class="%s">%s</tspan>`, html.EscapeString(line[at:m[0]]), class(word), html.EscapeString(word))
		at = m[1]
	}
	return b.String() + html.EscapeString(line[at:])
}

func class(word string) string {
	switch {
	case word == "SLOW":
		return "alarm"
	case strings.HasPrefix(word, "window "), strings.HasPrefix(word, "$ "):
		return "dim"
	case word == "Try:", word == "gpu_bound":
		return "good"
	}
	return "cause"
}
