package top

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/gdamore/tcell/v3"
)

// intervals are those that + and - choose from.
var intervals = []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second,
	2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute}

const (
	page     = 30 // frames
	maxTyped = 64 // characters of the filter
)

// action is what a key asks of the program around the view.
type action int

const (
	nothing action = iota
	quit
	stop   // as ^Z
	redraw // all of the screen
)

// key applies a key.
func (v *View) key(e *tcell.EventKey) action {
	if v.typing {
		return v.typed(e)
	}
	name := tcell.KeyNames[e.Key()]
	if e.Key() == tcell.KeyRune {
		name = e.Str()
	}
	switch name {
	case "q":
		if v.mode == help {
			v.mode = overview
			return nothing
		}
		return quit
	case "Ctrl-C", "F10":
		return quit
	case "Ctrl-Z":
		return stop
	case "Ctrl-L":
		return redraw
	case "Up", "k":
		v.move(-1)
	case "Down", "j":
		v.move(1)
	case "Enter":
		if v.mode == overview {
			v.mode, v.scroll = details, 0
		} else {
			v.mode = overview
		}
	case "Esc", "Backspace", "Backspace2":
		if v.mode == overview {
			v.filter = ""
		}
		v.mode = overview
	case "F1":
		v.mode, v.scroll = help, 0
	case "h", "?":
		v.toggle(help)
	case "F5", "t":
		v.toggle(processes)
	case "p", " ":
		v.pause()
	case "Left":
		v.seek(-1)
	case "Right":
		v.seek(1)
	case "PgUp":
		v.seek(-page)
	case "PgDn":
		v.seek(page)
	case "Home":
		v.seek(-len(v.frames))
	case "End":
		v.present()
	case "s", ">":
		v.order = (v.order + 1) % orders
	case "<":
		v.order = (v.order + orders - 1) % orders
	case "I":
		v.reverse = !v.reverse
	case "/":
		v.typing = v.mode == overview
	case "+", "=":
		v.faster(1)
	case "-":
		v.faster(-1)
	}
	return nothing
}

// toggle shows a page, or the overview if the page is shown.
func (v *View) toggle(page mode) {
	v.scroll = 0
	if v.mode == page {
		page = overview
	}
	v.mode = page
}

// typed applies a key to the filter.
func (v *View) typed(e *tcell.EventKey) action {
	switch e.Key() {
	case tcell.KeyCtrlC:
		return quit
	case tcell.KeyEnter:
		v.typing = false
	case tcell.KeyEscape:
		v.typing, v.filter = false, ""
	case tcell.KeyBackspace, tcell.KeyBackspace2:
		_, size := utf8.DecodeLastRuneInString(v.filter)
		v.filter = v.filter[:len(v.filter)-size]
	case tcell.KeyRune:
		if utf8.RuneCountInString(v.filter) < maxTyped {
			v.filter += e.Str()
		}
	}
	return nothing
}

// move selects another job, or scrolls a page.
func (v *View) move(by int) {
	if v.mode != overview {
		v.scroll = max(0, v.scroll+by)
		return
	}
	f := v.frame()
	if f == nil {
		return
	}
	if list := v.jobs(f); len(list) > 0 {
		v.selected = list[max(0, min(len(list)-1, v.chosen(list)+by))].ID
	}
}

// pause stops the display, or lets it go on at the present.
func (v *View) pause() {
	if v.paused {
		v.present()
	} else {
		v.paused = true
	}
}

// seek shows another frame, and pauses.
func (v *View) seek(by int) {
	if len(v.frames) > 0 {
		v.paused = true
		v.at = max(0, min(len(v.frames)-1, v.at+by))
	}
}

// present shows the newest frame, and goes on.
func (v *View) present() {
	v.at, v.paused = max(0, len(v.frames)-1), false
}

// faster changes the interval: by is 1 for + and -1 for -.
func (v *View) faster(by int) {
	i, found := slices.BinarySearch(intervals, v.Interval)
	if !found && by > 0 {
		i--
	}
	v.Interval = intervals[max(0, min(len(intervals)-1, i+by))]
}
