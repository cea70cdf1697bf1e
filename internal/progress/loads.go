package progress

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

// maxLoads bounds the loads that are open at a time. Further begins are ignored.
const maxLoads = 64

// Ranks of what is loaded. The end of a part, such as the last of a checkpoint's shards, does not end the load of the
// whole.
const (
	shards uint8 = iota + 1
	weights
	model
	server // is started, and loads a model meanwhile
)

var (
	loaded = map[string]uint8{
		"shards": shards, "shard": shards, "weight": weights, "weights": weights, "checkpoint": weights, "tensors": weights,
		"safetensors": shards, "model": model, "servable": model, "pipeline": model, "models": model, "engine": model,
		"network": model, "encoder": model, "session": model, "modell": model, "modèle": model, "modelo": model,
		"modello": model, "модель": model, "модели": model, "模型": model, "モデル": model, "모델": model, "tokenizer": 0,
	}
)

// stateChange is that of a server's worker: its model, without its number and version, and its new state.
var stateChange = regexp.MustCompile(`-\d+-(\S+?)(?:_[\d.]+)? State change .*-> \w*(STARTED|LOADED)$`)

type load struct {
	model string
	noun  string // what is loaded, if no known thing
	what  uint8
	from  time.Duration
	part  time.Duration // when the latest part was loaded
}

// loads follows model loads.
type loads struct {
	emit   func(Event)
	open   []load        // in the order of their begin; at most one has no name
	failed string        // the line that ends a load now, if that failed
	before time.Duration // when the line before was printed
	lastTo time.Duration // end of the latest load
	label  bool          // the open load began with the label of a function
	loader bool          // and a loader printed since
	left   uint64        // the function that printed behind the loader; the load ended there, if no loader prints again
}

const (
	loaderGap   = time.Second     // in which a loader prints again
	longStartUp = 5 * time.Minute // of a program that loads first of all
)

// line handles a line by its verb: it begins a load, ends it, or is within.
func (l *loads) line(at time.Duration, x *text) {
	defer func() { l.before = at }()
	if l.labelled(at, x) {
		return
	}
	if bytes.Contains(x.line, []byte(" -> ")) && l.state(at, stateChange.FindSubmatch(x.line)) {
		return
	}
	x.loading = ""
	if n := len(l.open); n > 0 {
		x.loading = l.open[n-1].noun
	}
	verb, form := x.loadVerb()
	switch {
	case form == loadsElse && len(l.open) == 1 && l.open[0].part == 0:
		l.open[0].part = at // the end is not printed
	case form == noVerb && len(l.open) > 0 && (x.onlyEnds() || l.lasted(at, x.loadTime())):
		l.end(at, server, "", 0)
	}
	if form == noVerb || form == loadsElse {
		return
	}
	what := x.loadedThing(verb)
	switch percent, bar := x.percent(); {
	case bar && percent < 100 && form == verbBegins:
		l.begin(at, what, "")
	case bar && percent == 100:
		l.end(at, what, "", 0)
	case bar:
	case form == verbBegins && l.begin(at, what, x.modelName(verb)):
		l.label = x.label() != nil
		if what == 0 {
			l.open[len(l.open)-1].noun = string(x.lowered(verb + 1))
		}
	case form == verbBegins:
	case form == verbFails:
		if len(l.open) > 0 {
			l.failed = nameOf(bytes.TrimSpace(x.line))
			l.end(at, server, x.modelName(verb), 0)
			l.failed = ""
		}
	default:
		l.end(at, what, x.modelName(verb), x.loadTime())
	}
}

// labelled handles a line that begins with the name of a function, if it belongs to a load.
func (l *loads) labelled(at time.Duration, x *text) bool {
	label := x.label()
	loader := bytes.Contains(label, []byte("load"))
	if l.left != 0 && !loader && (label != nil && x.words(1) != l.left || at-l.open[0].part > loaderGap) {
		l.end(l.open[0].part, server, "", 0)
	}
	switch {
	case !loader && (!l.loader || label == nil):
		return false
	case l.label && len(l.open) > 0 && loader:
		l.loader, l.left = true, 0
	case l.label && len(l.open) > 0 && l.left == 0:
		l.left, l.open[0].part = x.words(1), at
	case len(l.open) == 0 && x.modelFile() != "":
		l.begin(at, model, x.modelFile())
		l.label, l.loader = true, true
	}
	return true
}

// lasted reports whether something that took so long until now began with the latest load.
func (l *loads) lasted(at, took time.Duration) bool {
	return took > time.Second/2 && (at-took-l.open[len(l.open)-1].from).Abs() <= slack
}

// state handles a change of state, if it is one.
func (l *loads) state(at time.Duration, change [][]byte) bool {
	switch {
	case change == nil:
		return false
	case string(change[2]) == "STARTED":
		l.begin(at, server, nameOf(change[1]))
	default:
		l.end(at, server, nameOf(change[1]), 0)
	}
	return true
}

// begin reports whether a load begins, instead of a part of one or a second one of the same name.
func (l *loads) begin(at time.Duration, what uint8, name string) bool {
	if len(l.open) > 0 && (l.open[0].what != what || name == "" || l.find(name) >= 0 || l.label) {
		return false
	}
	if len(l.open) == maxLoads {
		return false
	}
	l.open = append(l.open, load{model: name, what: what, from: at})
	l.label, l.loader, l.left = false, false, 0
	l.emit(Event{Kind: LoadBegin, From: at, Model: name})
	return true
}

// end ends the load of this name, or else one that began without a name. Without a name it ends the latest. took is how
// long the load took by its line; a load whose begin was not printed is made of it.
func (l *loads) end(at time.Duration, what uint8, name string, took time.Duration) {
	i := len(l.open) - 1
	switch {
	case i < 0 && took == 0 && what >= model && name != "" && l.lastTo == 0 && at-l.before > at/2 && at < longStartUp:
		took = at - l.before // most of the time since the start
		fallthrough
	case i < 0 && took > 0 && at-took >= l.lastTo && what >= weights:
		l.open = append(l.open, load{model: name, what: what, from: at - took})
		l.emit(Event{Kind: LoadBegin, From: at - took, Model: name})
		i = 0
	case i < 0:
		return
	case what == 0 && name == "" && took == 0 && l.open[i].what == server:
		return // of something else
	case what != 0 && what < l.open[i].what && took < (at-l.open[i].from)*9/10:
		l.open[i].part = at
		return
	case name != "":
		if i = l.find(name); i < 0 {
			i = l.find("")
		}
	}
	if i < 0 {
		return
	}
	one := l.open[i]
	if one.model != "" {
		name = one.model
	}
	l.open = append(l.open[:i], l.open[i+1:]...)
	l.lastTo, l.label, l.loader, l.left = at, false, false, 0
	l.emit(Event{Kind: LoadEnd, From: one.from, To: at, Model: name, Failed: l.failed})
}

// trains ends the loads that were over when the training began.
func (l *loads) trains(since time.Duration) {
	l.open = slices.DeleteFunc(l.open, func(one load) bool {
		over := one.part > 0 && one.from < since
		if over {
			l.label, l.loader, l.left = false, false, 0
			l.emit(Event{Kind: LoadEnd, From: one.from, To: one.part, Model: one.model})
		}
		return over
	})
}

func (l *loads) close() {
	l.trains(math.MaxInt64)
	for _, one := range l.open {
		l.emit(Event{Kind: LoadDrop, From: one.from, Model: one.model})
	}
	l.open = l.open[:0]
}

func (l *loads) find(name string) int {
	for i, one := range l.open {
		if one.model == name {
			return i
		}
	}
	return -1
}

const (
	noVerb uint8 = iota
	verbBegins
	verbEnds
	verbFails
	loadsElse // begins to load something that is no model
)

// loadVerb finds the verb of a line that is about a load, and whether it begins or ends it.
func (x *text) loadVerb() (verb int, form uint8) {
	for i := range x.tokens {
		switch found := x.loadForm(i); {
		case found != noVerb && !x.loadsData(i):
			return i, found
		case found == verbBegins && form == noVerb:
			form = loadsElse
		}
	}
	return 0, form
}

// loadsData reports whether what a verb is about is no model: the last of its nouns is data.
func (x *text) loadsData(verb int) bool {
	data := x.is(verb-1, dataWord)
	for i := verb + 1; i < len(x.tokens) && x.tokens[i].form == word && x.joined(i); i++ {
		data = x.is(i, dataWord) || data && x.thing(i) == 0
	}
	return data
}

// onlyEnds reports whether a line says only that something is over, and how long it took: Done (t=0.7s)
func (x *text) onlyEnds() bool {
	return x.is(0, endWord|readyWord) && !slices.ContainsFunc(x.tokens, func(t token) bool {
		return t.form == word && t.class&(endWord|readyWord) == 0 && t.to-t.from > len("secs")
	})
}

// loadEvent is the form of a name such as model_load_end.
func (x *text) loadEvent(i int) uint8 {
	switch all := x.parts(i); {
	case all&(loadWord|loadingWord|loadedWord) == 0 || x.counts(i+1) || !bytes.Contains(x.lowered(i), []byte("model")):
	case all&(endWord|loadedWord) != 0:
		return verbEnds
	case all&beginWord != 0:
		return verbBegins
	}
	return noVerb
}

func (x *text) loadForm(i int) uint8 {
	switch c := x.tokens[i].class; {
	case c == 0:
		return x.loadEvent(i)
	case c&(loadingWord|loadedWord|loadWord|startWord|startedWord|readyWord) == 0:
	case x.is(i-1, failedWord) || x.is(i-2, failedWord) && x.lowerIs(i-1, "to"): // failed to load, error reading
		if x.loadedThing(i) > 0 || x.modelFile() != "" {
			return verbFails
		}
	case c&loadingWord != 0:
		return x.loadingForm(i)
	case c&loadWord != 0:
		return x.loadNounForm(i)
	case c&loadedWord != 0 && x.endsLoad(i), c&startedWord != 0 && x.lowerIs(i+1, "in") && x.loadTime() > 0:
		return verbEnds
	case c&startWord != 0 && (x.beginsText(i) || bytes.HasSuffix(x.between(i), []byte(": "))) &&
		!x.lowerIs(i+1, "to") && (x.thing(i+1) > 0 || x.modelFile() != ""):
		return verbBegins
	case c&readyWord != 0 && x.thing(i-1) > 0 && x.joined(i):
		return verbEnds
	}
	return noVerb
}

func (x *text) loadingForm(i int) uint8 {
	ended := x.hasAfter(i, endWord)
	switch {
	case x.beginsText(i) && (ended || x.loadTime() > 0 && !x.bar()):
		return verbEnds
	case x.beginsText(i) && (!x.is(i, readingWord) || x.loadedThing(i) >= weights && !x.hasAfter(i, epochWord)):
		return verbBegins
	case ended && x.thing(i-1) > 0, x.is(i-1, endWord) && x.joined(i): // Model loading took, Finished loading
		return verbEnds
	}
	return noVerb
}

func (x *text) loadNounForm(i int) uint8 {
	switch {
	case x.lowerIs(i-1, "to") && x.is(i-2, requestWord):
		return verbBegins
	case x.hasAfter(i, failedWord):
		return verbFails
	case x.beginsText(i) && x.hasAfter(i, endWord|readyWord):
		return verbEnds
	case x.beginsText(i) && x.hasAfter(i, beginWord):
		return verbBegins
	}
	return noVerb
}

func (x *text) lowerIs(i int, name string) bool { return string(x.lowered(i)) == name }

func (x *text) thing(i int) uint8 {
	if x.loading != "" && x.lowerIs(i, x.loading) {
		return model
	}
	return loaded[string(x.lowered(i))]
}

// beginsText reports whether a word is the first of what a line says, behind the logger's prefix.
func (x *text) beginsText(i int) bool {
	if i == 0 || x.tokens[i-1].form == clock || x.is(i-1, levelWord) {
		return true
	}
	gap := x.between(i)
	if bytes.HasSuffix(gap, []byte(":")) || bytes.HasSuffix(gap, []byte(": ")) {
		return true
	}
	return bytes.Contains(gap, []byte("  ")) || bytes.ContainsAny(gap, "])}\"'>|-\t") && bytes.IndexByte(gap, ',') < 0
}

// endsLoad reports whether "loaded" is about a model: as the first word, behind what was loaded, or with
// "successfully".
func (x *text) endsLoad(i int) bool {
	if (x.beginsText(i) || x.lowerIs(i-1, "successfully")) && (!x.is(i, readingWord) || x.loadedThing(i) >= weights) {
		return true
	}
	for j := range i { // Model small loaded in 2 s
		if x.thing(j) > 0 && x.beginsText(j) && x.joined(i) && x.loadTime() > 0 {
			return true
		}
	}
	return x.thing(i-1) > 0 && x.joined(i) &&
		(x.beginsText(i-1) || x.loadTime() > 0 || x.hasAfter(i, endWord) || x.lowerIs(i+1, "successfully"))
}

func (x *text) hasAfter(i int, c class) bool {
	for j := i + 1; j < len(x.tokens); j++ {
		if x.is(j, c) {
			return true
		}
	}
	return false
}

// loadedThing is what a line's verb is about: the last of its nouns, so that a checkpoint's shards are shards.
func (x *text) loadedThing(verb int) (what uint8) {
	if x.is(verb, startWord|startedWord) && x.thing(verb+1) == 0 {
		return server
	}
	what = x.thing(verb - 1)
	for i := verb + 1; i < len(x.tokens) && i <= verb+4; i++ {
		if thing := x.thing(i); thing > 0 && (what == 0 || thing == shards) {
			what = thing
		}
	}
	if what == 0 && slices.ContainsFunc(x.tokens, func(t token) bool { return t.class&hugeUnit != 0 }) {
		return model // Loaded mistral-7b (14.5 GB)
	}
	return what
}

func (x *text) bar() bool { _, bar := x.percent(); return bar }

func (x *text) percent() (percent float64, bar bool) {
	for i := range x.tokens {
		if x.integer(i) && x.percentAt(i) {
			return x.tokens[i].value, true
		}
	}
	return 0, false
}

func (x *text) loadTime() time.Duration {
	total := 0.0
	for i := range x.tokens {
		if d := x.durationAt(i); d > 0 && total == 0 {
			total = d
		}
	}
	return seconds(total)
}

// label is the name before a line's first colon.
func (x *text) label() []byte {
	colon := bytes.Index(x.line, []byte(": "))
	for i := range x.tokens {
		if name := x.line[x.tokens[i].from:x.tokens[i].to]; x.tokens[i].to == colon && bytes.IndexByte(name, '_') > 0 {
			return name
		}
	}
	return nil
}

// pathNames find the path of a model in a line, up to what is behind it.
var pathNames = []*regexp.Regexp{
	regexp.MustCompile(`--model +(?:model=)?([^ "'\t,;]+)`),
	regexp.MustCompile(` from ["']?([^\\/ ]*[\\/].*?)["']?(?: \(| in | took | *$)`),
}

var fieldNames = []*regexp.Regexp{
	regexp.MustCompile(`name: ([^ "'\t,;]+)`),
	regexp.MustCompile(`(?:^|[ ,{"])(?:model|model_name|model_path|path|file)(?:": ?"|=)"?([^ "'\t,;}]+)`),
}

// modelNames find a name behind the verb: without a folder (but no word such as "scratch"), in quotes, or the only
// word, without its version.
var modelNames = []*regexp.Regexp{
	regexp.MustCompile(` from ["']?([^ "']*(?:[-._][^ "']*[A-Za-z0-9]|[0-9]))[."']*$`),
	regexp.MustCompile(`'([^']+)'`),
	regexp.MustCompile(`^[:= ]*(?:(?i:` + strings.Join(slices.Collect(maps.Keys(loaded)), "|") +
		`)[:= ]+)?([A-Za-z][^ "'=\t,;]*?|[^ "'\t,;]*/[^ "'\t,;]*?)(?::\d[^ "'\t,;]*)?(?: (?:\(|(?:on|onto|to|into) ).*)?[." ]*$`),
}

func firstName(patterns []*regexp.Regexp, text []byte) string {
	for _, re := range patterns {
		if m := re.FindSubmatch(text); m != nil && loaded[string(bytes.ToLower(m[1]))] == 0 {
			return nameOf(m[1])
		}
	}
	return ""
}

func (x *text) modelFile() string { return firstName(pathNames, x.line) }

func (x *text) modelName(verb int) string {
	return cmp.Or(x.modelFile(), firstName(fieldNames, x.line), firstName(modelNames, x.line[x.tokens[verb].to:]))
}
