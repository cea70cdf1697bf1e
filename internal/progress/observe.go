package progress

import (
	"bytes"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// observation is what one line says. Roles are those of its own words: the lines around it may say otherwise.
type observation struct {
	at       time.Duration
	template uint64 // the same for lines that differ in their numbers alone
	exact    uint64 // the same for lines that do not differ
	lead     uint64 // the same for lines whose words are the same before their first number but one

	numbered bool
	number   float64
	amount   bool // number is how many epochs are done, with a fraction
	alone    bool // nothing else is in the line
	total    int  // of epochs; 0 if the line does not have it
	firm     bool // not only a number: no second epoch is needed to believe it

	place     place   // in the epoch
	stepTime  float64 // of a batch, in seconds; 0 if the line does not have it
	elapsed   float64 // of a bar, in whole seconds; negative if the line does not have it
	durations []float64

	begins, ends, trains, evaluates, saves bool
	metric                                 bool
	sums                                   bool // it sums the training up: train_runtime
	repeats                                bool // as a pattern of the user may: only its first line begins the epoch
}

// class is what a word may say. A compound such as val_loss is a word of its own.
type class uint32

const (
	epochWord class = 1 << iota
	overEpochs
	mention     // before "epoch": the line speaks of it, instead of being about it
	mentionNext // the same, as the word before
	ofWord      // between a number and the total
	numberWord  // between a word and its number
	beginWord
	endWord
	trainWord
	evalWord
	saveWord
	stepWord
	groupWord // of epochs
	batchTime
	wholeTime
	remaining
	loadingWord
	loadedWord
	loadWord
	requestWord
	failedWord
	startWord
	startedWord
	readyWord
	dataWord    // is loaded, and no model
	readingWord // reads a model, or anything
	levelWord
	counterWord // of a hint
	settingPart // of a compound that is a setting: max_epoch
	rateWord    // the learning rate is known when an epoch begins
	speedWord
	hugeUnit // of data as large as a model
)

// vocabulary is what words say, in lower case.
var vocabulary = func() map[string]class {
	all := map[string]class{}
	for c, words := range map[class]string{ //nolint:gosec // G101: words, not credentials
		epochWord: "epoch ep epoche epoca epoque époque época epoka epoki epok epoke epocha epocă epoha epookki " +
			"эпоха эпохи эпоху эпохе епоха епоху εποχή",
		overEpochs: "epochs",
		mention: "best save saves saving saved checkpoint checkpoints checkpointing resume resumed resuming restore " +
			"restored restoring load loads loading loaded early patience stopped stopping per unix",
		mentionNext: "at from until since every the in reached last max maximum min total num this next previous prev " +
			"each before to",
		ofWord:     "of von de di sur van av af z ze из",
		numberWord: "is number no num nr idx id index count counter n nº n° numéro numero número nummer номер",
		beginWord: "start starts starting started begin begins beginning begun beginn beginnt gestartet début debut " +
			"inicio início inizio iniciando początek начало начинается",
		endWord: "end ends ended ending finish finished finishes finishing complete completed done took takes summary " +
			"results result avg average mean after ende beendet abgeschlossen fertig fin terminé terminée terminada terminata " +
			"finalizada completada concluída concluida completata koniec zakończona zakończono конец завершена закончена",
		trainWord: "train training trn entraînement entrenamiento treinamento treino addestramento trening обучение",
		evalWord: "val valid validation validating validate eval evaluation evaluating evaluate evaluator test testing " +
			"inference dev cv sanity validierung validación validação validazione walidacja évaluation валидация проверка",
		saveWord: "save saving saved checkpoint checkpoints ckpt",
		stepWord: "step steps iter iters iteration iterations it itr batch batches update updates " +
			"schritt étape paso passo krok шаг",
		groupWord: "fold run stage phase trial rank gpu node worker task client seed split experiment member lauf",
		batchTime: "time batch_time iter_time step_time train_time batch_cost avg_batch_cost dt batch",
		wholeTime: "took takes elapsed duration dur epoch_time time_elapsed dauer durée duración duração durata",
		remaining: "eta remaining left",
		loadingWord: "loading reloading initializing reading restoring lade chargement cargando carregando caricamento " +
			"wczytywanie ładowanie загрузка загружаю",
		loadedWord: "loaded reloaded initialized read restored geladen chargé chargée cargado cargada carregado " +
			"caricato załadowano załadowany загружена загружен загружено",
		loadWord:    "load loads reload",
		requestWord: "start starting requested begin beginning",
		failedWord:  "failed failure fail error unable cannot not",
		startWord:   "starting launching",
		startedWord: "started",
		readyWord:   "ready ok",
		dataWord: "data dataset datasets images annotations labels config configuration tokenizer vocab vocabulary " +
			"library plugin plugins extension extensions environment corpus samples features settings metadata",
		readingWord: "reading initializing restoring read restored",
		levelWord:   "info inf debug dbg warning warn wrn",
		settingPart: "max num n total best last start warmup per save every patience min stop resume end final nb number",
		rateWord:    "lr learning_rate rate",
		hugeUnit:    "gb gib",
		speedWord:   "fps ips sps tps wps speed throughput",
		counterWord: "iter iteration itr it step batch round cycle pass global_step global_iter",
	} {
		for w := range strings.FieldsSeq(words) {
			all[w] |= c
		}
	}
	return all
}()

// foreign are words in other scripts, the longer ones of a kind first. foreignLead are their first bytes.
var foreign, foreignLead = func() (words []foreignText, lead [256]bool) {
	for _, one := range []foreignText{
		{epochWord, "エポック 轮次 輪次 轮数 轮 輪 周期 에포크 에폭"},
		{mention, "共 最佳 最優 最良 最高 恢复"},
		{mention | loadingWord, "加载 載入 読み込み"},
		{0, "模型 モデル 모델"},
		{beginWord, "开始 開始 시작"},
		{endWord, "完成 结束 結束 完了 終了 완료 종료 平均"},
		{trainWord, "训练 訓練 学習 학습"},
		{evalWord, "验证 驗證 検証 测试 測試 评估 評価 검증 평가"},
		{saveWord, "保存 저장"},
		{stepWord, "步数 步 批次 ステップ バッチ 스텝"},
		{wholeTime, "用时 耗时 所要時間 経過時間 소요"},
		{remaining, "剩余 残り 남은"},
		{0, "秒 초 分"},
	} {
		for w := range strings.FieldsSeq(one.text) {
			words = append(words, foreignText{one.class, w})
			lead[w[0]] = true
		}
	}
	return words, lead
}()

type foreignText struct {
	class class
	text  string
}

// units are those of a duration, in seconds.
var units = map[string]float64{"s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1, "m": 60, "min": 60, "mins": 60,
	"minute": 60, "minutes": 60, "h": 3600, "hour": 3600, "hours": 3600, "ms": 0.001, "秒": 1, "초": 1, "分": 60}

// text is a line with its tokens.
type text struct {
	line   []byte
	tokens []token
	lower  [maxWord]byte

	durations []float64 // of the latest observation
	loading   string    // what the latest load loads, if no known thing
}

// lowered is a word in lower case; "" for a number or a word that is longer than any that is known.
func (x *text) lowered(i int) []byte {
	if i < 0 || i >= len(x.tokens) || x.tokens[i].form != word || x.tokens[i].to-x.tokens[i].from > len(x.lower) {
		return nil
	}
	return lower(x.lower[:0], x.line[x.tokens[i].from:x.tokens[i].to])
}

func (x *text) is(i int, c class) bool {
	return i >= 0 && i < len(x.tokens) && x.tokens[i].class&c != 0
}

// between is the text before token i: after the token before it.
func (x *text) between(i int) []byte {
	from := 0
	if i > 0 {
		from = x.tokens[i-1].to
	}
	if i == len(x.tokens) {
		return x.line[from:]
	}
	return x.line[from:x.tokens[i].from]
}

// dotted reports whether a word is a part of a name such as train.py or d2.evaluation.
func (x *text) dotted(i int) bool {
	t := x.tokens[i]
	before := t.from >= 2 && x.line[t.from-1] == '.' && alphabetic(x.line[t.from-2])
	return before || t.to+1 < len(x.line) && x.line[t.to] == '.' && alphabetic(x.line[t.to+1])
}

// number reports whether token i is a number that counts something.
func (x *text) counts(i int) bool {
	return i >= 0 && i < len(x.tokens) && (x.tokens[i].form == integer || x.tokens[i].form == decimal)
}

func (x *text) integer(i int) bool { return x.counts(i) && x.tokens[i].form == integer }

// pair reports whether tokens i and i+1 are 3/10 or 3 of 10. next is the token behind.
func (x *text) pair(i int) (of float64, next int, ok bool) {
	if x.integer(i) && x.integer(i+1) && string(bytes.TrimSpace(x.between(i+1))) == "/" {
		return x.tokens[i+1].value, i + 2, true
	}
	if x.integer(i) && x.is(i+1, ofWord) && x.integer(i+2) {
		return x.tokens[i+2].value, i + 3, true
	}
	return 0, i + 1, false
}

const (
	maxNumber       = 1e7 // of epochs: a larger one is a time
	maxSeparator    = 48  // bytes between a word and its number, as of a padded column
	maxAbbreviation = 3   // letters behind which a point may stand: Ep. 3
	aroundNumber    = " \t:=#[(\"'|,-)№：（【"
)

// numberOf finds the number of the word at i, before or behind it. from and to are the tokens that it takes up.
func (x *text) numberOf(i int) (number, total float64, from, to int, ok bool) {
	if x.integer(i-1) && bytes.HasSuffix(bytes.TrimRight(x.between(i-1), " "), []byte("第")) {
		return x.tokens[i-1].value, 0, i - 1, i + 1, true
	}
	if x.integer(i-1) && x.is(i-2, endWord) && x.joined(i) { // Finished 3 epoch
		return x.tokens[i-1].value, 0, i - 1, i + 1, true
	}
	n, gap := i+1, string(x.between(i))
	glued := gap == "" && x.integer(i-1) // 3epoch:train:51-100batch
	if x.is(n, trainWord|numberWord) {
		n++
	}
	sep := x.between(n)
	if n == i+1 && x.tokens[i].to-x.tokens[i].from <= maxAbbreviation {
		sep = bytes.TrimPrefix(sep, []byte("."))
	}
	if x.counts(n) && x.follows(n, sep) && !negative(sep) && !glued {
		if x.tokens[n].form == decimal {
			return x.tokens[n].value, 0, i, n + 1, bytes.ContainsAny(sep, ":=") || x.bracketed(i, n)
		}
		of, next, both := x.pair(n)
		if !both {
			return x.tokens[n].value, 0, i, n + 1, true
		}
		return x.tokens[n].value, of, i, next, true
	}
	// 3epoch, 1/3epoch, 1/3 epoch, 3rd epoch
	if i >= 2 && x.integer(i-1) && x.integer(i-2) && string(x.between(i-1)) == "/" && (gap == "" || gap == " ") {
		return x.tokens[i-2].value, x.tokens[i-1].value, i - 2, i + 1, true
	}
	if glued {
		return x.tokens[i-1].value, 0, i - 1, i + 1, true
	}
	return 0, 0, 0, 0, false
}

// bracketed reports whether tokens i to n are alone in brackets.
func (x *text) bracketed(i, n int) bool {
	from, to := x.tokens[i].from, x.tokens[n].to
	return from > 0 && to < len(x.line) && x.line[from-1] == '(' && x.line[to] == ')'
}

// follows reports whether a number stands behind its word: nothing but a separator is between.
func (x *text) follows(n int, sep []byte) bool {
	if len(sep) > maxSeparator || x.glued(n) {
		return false
	}
	sep = bytes.Trim(sep, aroundNumber)
	return len(sep) == 0 || len(sep) > 1 && len(bytes.Trim(sep, ".…")) == 0 // Epoch ... : 3
}

// negative reports whether a separator ends in the sign of a number.
func negative(sep []byte) bool {
	return len(sep) > 1 && sep[len(sep)-1] == '-' && sep[len(sep)-2] != '-'
}

// glued reports whether letters follow a number at once, as in 3D.
func (x *text) glued(i int) bool {
	return i >= 0 && i+1 < len(x.tokens) && x.tokens[i+1].form == word && x.tokens[i+1].from == x.tokens[i].to
}

// findEpoch reads the epoch of a line. from and to are the tokens of it.
func (x *text) findEpoch(o *observation) (from, to int) {
	compound := true
	for i := range x.tokens {
		unit := x.is(i, epochWord|overEpochs) && x.lowerIs(i-1, "s") && string(x.between(i)) == "/"
		plain := x.is(i, epochWord) || x.is(i, overEpochs) && x.percentAt(i+1) || unit
		if o.numbered && (!compound || !plain) || !plain && !x.compound(i) || x.dotted(i) {
			continue
		}
		number, total, first, next, ok := x.numberOf(i)
		over := ok && x.percentAt(next-1)
		if unit { // 33%|1/3 [00:02<00:04, 2.00s/epoch]
			next = 1 + slices.IndexFunc(x.tokens[:i], func(t token) bool { return t.to < len(x.line) && x.line[t.to] == '%' })
			over, first = next > 0, max(next-1, 0)
		}
		if over { // a bar over the epochs
			if number, total, next, ok = x.barAt(next); !ok {
				continue
			}
		}
		if !ok || number > maxNumber || x.mentioned(first, next) || x.inPath(i) {
			continue
		}
		o.numbered, o.number, o.total, compound = true, number, int(min(total, maxNumber)), !plain
		o.amount = over || x.tokens[next-1].form == decimal
		from, to = first, next
	}
	return from, to
}

func (x *text) percentAt(i int) bool {
	return x.counts(i) && x.tokens[i].to < len(x.line) && x.line[x.tokens[i].to] == '%'
}

// barAt reads the 1/3 of a bar behind its percentage.
func (x *text) barAt(i int) (done, total float64, next int, ok bool) {
	if total, next, ok = x.pair(i); !ok {
		i++ // a bar of ASCII ends in a digit: ###3
		total, next, ok = x.pair(i)
	}
	if !ok {
		return 0, 0, 0, false
	}
	return x.tokens[i].value, total, next, true
}

// compound reports whether a word such as current_epoch counts epochs.
func (x *text) compound(i int) bool {
	t := x.tokens[i]
	if t.form != word || t.to-t.from <= len("epoch") {
		return false
	}
	all := x.parts(i)
	return all&epochWord != 0 && all&settingPart == 0
}

// setting reports whether a compound such as warmup_steps is a setting.
func (x *text) setting(i int) bool {
	return x.parts(i)&settingPart != 0 && bytes.IndexByte(x.lowered(i), '_') > 0
}

// parts is what the parts of a compound say: on_epoch_end, currentEpoch. It is 0 for a word of one part.
func (x *text) parts(i int) (all class) {
	low, from := x.lowered(i), 0
	if low == nil {
		return 0
	}
	name := x.line[x.tokens[i].from:x.tokens[i].to]
	for to := range low {
		switch {
		case low[to] == '_':
			all = withPart(all, low[from:to])
			from = to + 1
		case to > from && name[to] < 'a' && name[to-1] >= 'a':
			all = withPart(all, low[from:to])
			from = to
		}
	}
	if from > 0 {
		all = withPart(all, low[from:])
	}
	return all
}

// withPart adds what the next part of a compound says. num_epochs is a setting, and epoch_num a number.
func withPart(all class, part []byte) class {
	c := vocabulary[string(part)]
	if all == epochWord && c&numberWord != 0 {
		c &^= settingPart
	}
	return all | c
}

// event is what the name of an event says, without a value: epoch_end, onEpochEnd, epoch.end.
func (x *text) event(i int, all class) class {
	if x.dotted(i) && (x.is(i-1, epochWord) || x.is(i+1, epochWord)) {
		all |= x.tokens[i].class | epochWord
	}
	if all&epochWord == 0 || x.counts(i+1) && bytes.ContainsAny(x.between(i+1), ":=") {
		return 0
	}
	return all
}

// mentioned reports whether the words before an epoch make the line speak of something else.
func (x *text) mentioned(first, next int) bool {
	if x.is(first-1, mentionNext) && x.joined(first) && string(x.between(next)) != ": " { // loss at epoch 3: 0.91
		return true
	}
	if x.setting(first-1) && bytes.ContainsAny(x.between(first), ":=") { // max_duration: 2ep, not epoch_start epoch=2
		return true
	}
	for j := range first {
		if x.is(j, mention) && !x.dotted(j) {
			return true
		}
	}
	return false
}

// joined reports whether only a blank is before a token.
func (x *text) joined(i int) bool { return string(x.between(i)) == " " }

// modelFiles are the endings of a model's file.
var modelFiles = bytes.Fields([]byte(".ckpt .pt .pkl .h5 .keras .bin .safetensors .gguf .onnx .engine .npz .msgpack"))

const maxPath = 128 // bytes of a name behind the word

// inPath reports whether a token is a part of a file's name.
func (x *text) inPath(i int) bool {
	rest := x.line[x.tokens[i].from:min(x.tokens[i].from+maxPath, len(x.line))]
	if blank := bytes.IndexAny(rest, " \t"); blank >= 0 {
		rest = rest[:blank]
	}
	return slices.ContainsFunc(modelFiles, func(end []byte) bool { return bytes.Contains(rest, end) })
}

// observe reads a line. row is set for a line of a table, with the token of the epoch's column.
func (x *text) observe(at time.Duration, column int) (o observation) {
	o.at, o.elapsed, o.durations = at, -1, x.durations[:0]
	from, to := 0, 0
	if column >= 0 {
		of, next, _ := x.pair(column)
		o.numbered, o.number, o.total = true, x.tokens[column].value, int(min(of, maxNumber))
		from, to = column, next
	} else {
		from, to = x.findEpoch(&o)
	}
	o.alone = to-from == len(x.tokens)
	if column >= 0 || !x.is(from-1, endWord) || !x.joined(from) { // Finished 3 epoch (60 steps)
		x.findPlace(&o, from, to)
	}
	x.readWords(&o, from, to)
	if column >= 0 {
		o.metric, o.begins = true, false
	}
	return o
}

// findPlace reads how far an epoch is: behind its number, or else before it.
func (x *text) findPlace(o *observation, from, to int) {
	measured := false
	for i := to; i < len(x.tokens); i++ {
		if x.placeAt(o, i, measured) || i == to && to > 0 && x.percentPlace(o, i) {
			return
		}
		measured = measured || x.tokens[i].form == decimal
	}
	for i := range from {
		if x.placeAt(o, i, i > 0 && x.tokens[i-1].form == decimal) {
			return
		}
	}
}

// placeAt reads 3/10, step 3, 1-100batch or 30%|. Behind a measured value, a pair is a place only in a bar.
func (x *text) placeAt(o *observation, i int, measured bool) bool {
	if !x.integer(i) {
		return false
	}
	t := x.tokens[i]
	if of, _, ok := x.pair(i); ok && of > 0 && t.value <= of && (!measured || x.inBar(t.from)) && !x.is(i-1, groupWord) {
		o.place = place{known: true, at: t.value, of: of}
		return true
	}
	if x.isStep(i-1) && x.follows(i, x.between(i)) && !x.is(i-2, speedWord) {
		o.place = place{known: true, at: t.value}
		return true
	}
	return false
}

// inBar reports whether the text before a number is that of a bar.
func (x *text) inBar(at int) bool {
	near := x.line[max(0, at-4):at]
	return bytes.ContainsAny(near, "|#[]") || bytes.IndexByte(x.line[max(0, at-maxPath):at], '%') >= 0
}

// results reports whether a line has what is known when an epoch is over.
func (o *observation) results() bool {
	return !o.place.known && (o.metric || o.ends || len(o.durations) > 0)
}

// percentPlace reads 30% where no pair follows.
func (x *text) percentPlace(o *observation, i int) bool {
	if !x.integer(i) || !x.percentAt(i) || x.tokens[i].value > 100 || x.hasPairAfter(i) {
		return false
	}
	o.place = place{known: true, at: x.tokens[i].value, of: 100}
	return true
}

// isStep reports whether a word counts steps: step, global_step.
func (x *text) isStep(i int) bool {
	if x.is(i, stepWord) {
		return true
	}
	name := x.lowered(i)
	under := bytes.LastIndexByte(name, '_')
	return under >= 0 && vocabulary[string(name[under+1:])]&stepWord != 0
}

func (x *text) hasPairAfter(i int) bool {
	for j := i + 1; j < len(x.tokens); j++ {
		if _, _, ok := x.pair(j); ok {
			return true
		}
	}
	return false
}

// readWords reads the roles, the durations and whether the line has results.
func (x *text) readWords(o *observation, from, to int) {
	role := 0              // of the first word of training (1) or evaluation (2)
	evals, trained := 0, 0 // names such as val_loss with a value, and other names with one
	others := 0
	for i := range x.tokens {
		t := x.tokens[i]
		if t.form != word {
			x.readNumber(o, i, to)
			continue
		}
		all := x.parts(i)
		event := x.event(i, all)
		said := t.class
		if o.numbered && all&(beginWord|endWord|groupWord) != 0 { // eval_start, TrainingPhase, but not val_loss
			said |= all
		}
		o.begins = o.begins || !o.ends && event&beginWord != 0
		o.ends = o.ends || !o.begins && event&endWord != 0
		if x.dotted(i) || i >= from && i < to {
			continue
		}
		switch {
		case role != 0:
		case said&trainWord != 0:
			role = 1
		case said&evalWord != 0:
			role = 2
		}
		if x.counts(i+1) && (x.tokens[i+1].form == decimal || bytes.ContainsAny(x.between(i+1), ":=")) && !x.isStep(i) {
			part, _, _ := bytes.Cut(x.lowered(i), []byte("_"))
			switch c := vocabulary[string(part)]; {
			case c&settingPart != 0: // best_loss
			case c&evalWord != 0:
				evals++
			default:
				trained++
			}
		}
		o.begins = o.begins || !o.ends && x.is(i, beginWord)
		o.ends = o.ends || !o.begins && x.is(i, endWord)
		o.sums = o.sums || bytes.HasSuffix(x.line[t.from:t.to], []byte("_runtime"))
		o.saves = o.saves || x.is(i, saveWord)
		if i >= to && !x.glued(i-1) {
			others++
		}
	}
	if role == 0 && evals > 0 && trained == 0 && !o.place.known {
		role = 2
	}
	o.trains, o.evaluates, x.durations = role == 1, role == 2, o.durations
	o.sums = o.sums && role != 2
	if o.begins && o.place.of == 0 {
		o.place = place{} // how many there will be
	}
	if o.place.of > 0 && o.place.at == o.number && o.total == 0 && !o.metric && others == 0 && !x.bar() &&
		to > 0 && to < len(x.tokens) && string(x.between(to)) == " (" {
		o.total, o.place = int(min(o.place.of, maxNumber)), place{} // Epoch 3 (3/10): the number again
	}
	heading := !o.place.known && !o.metric && !o.ends && len(o.durations) == 0 && others == 0
	setting := heading && o.total == 0 && from == 0 && bytes.HasPrefix(x.line, []byte("epoch:"))
	o.begins = !o.place.known && (o.begins || heading && !setting)
	o.firm = o.total > 0 || o.place.of > 0 || o.begins || o.ends || !o.place.known && (o.metric || len(o.durations) > 0)
}

// readNumber reads the number at i as a result, a duration or the time of a batch.
func (x *text) readNumber(o *observation, i, to int) {
	t := x.tokens[i]
	rest := x.line[t.to:]
	named := x.tokens[max(i-1, 0)].form == word && i > 0 && len(x.between(i)) <= maxSeparator
	switch {
	case t.form == date:
	case t.form == clock:
		switch {
		case bytes.HasPrefix(rest, []byte("<")) || bytes.HasPrefix(rest, []byte(" •")):
			o.elapsed = t.value
		case i >= to && !x.is(i-1, remaining) && !bytes.HasSuffix(x.between(i), []byte("<")):
			o.durations = append(o.durations, t.value)
		}
	case x.is(i-1, speedWord) || x.is(i-2, speedWord) && x.tokens[i-1].form == word:
		o.metric = true
	case x.durationAt(i) > 0 && bytes.HasPrefix(x.line[x.tokens[i+1].to:], []byte("<")):
		o.elapsed = x.durationAt(i)
	case x.durationAt(i) > 0:
		if i >= to && !x.is(i-1, remaining) {
			o.addDuration(x.durationAt(i), i > 0 && x.durationAt(i-2) > 0)
		}
		if t.form == decimal && x.isBatchTime(i) {
			o.setStepTime(x.durationAt(i))
		}
	case named && x.is(i-1, wholeTime) && i >= to:
		o.addDuration(t.value, false)
	case t.form == decimal:
		if bytes.HasPrefix(bytes.TrimLeft(rest, " "), []byte("it/s")) && t.value > 0 {
			o.setStepTime(1 / t.value)
		}
		if x.isBatchTime(i) {
			o.setStepTime(t.value)
		}
		o.metric = o.metric || (i >= to || named) && !x.is(i-1, rateWord)
	}
}

func (x *text) isBatchTime(i int) bool {
	return x.is(i-1, batchTime) && len(bytes.Trim(x.between(i), " \t:=(\"'")) == 0
}

func (o *observation) setStepTime(seconds float64) {
	if o.stepTime == 0 {
		o.stepTime = seconds
	}
}

const maxDurations = 8

// addDuration adds 1 min, or to it 23 s.
func (o *observation) addDuration(seconds float64, part bool) {
	if n := len(o.durations); part && n > 0 {
		o.durations[n-1] += seconds
	} else if n < maxDurations {
		o.durations = append(o.durations, seconds)
	}
}

// durationAt is 12.3s or 2 min in seconds; 0 for a rate such as 12 s/it and for anything else.
func (x *text) durationAt(i int) float64 {
	if !x.counts(i) || x.lowered(i+1) == nil || x.dotted(i+1) {
		return 0
	}
	gap := x.between(i + 1)
	unit := units[string(x.lowered(i+1))]
	after := bytes.TrimLeft(x.line[x.tokens[i+1].to:], " ")
	if unit == 0 || len(gap) > 1 || len(gap) == 1 && gap[0] != ' ' || bytes.HasPrefix(after, []byte("/")) {
		return 0
	}
	return x.tokens[i].value * unit
}

// template is a hash of the line's words, and one of the whole line.
func (x *text) template(needed bool) (words, all uint64) {
	if !needed {
		return 0, 0
	}
	h := fnv.New64a()
	_, _ = h.Write(x.line)
	return x.words(len(x.tokens)), h.Sum64()
}

// words is a hash of the words before token n.
func (x *text) words(n int) uint64 {
	h := fnv.New64a()
	for _, t := range x.tokens[:n] {
		if t.form == word {
			_, _ = h.Write(x.line[t.from:t.to])
			_, _ = h.Write([]byte{0})
		}
	}
	return h.Sum64()
}
