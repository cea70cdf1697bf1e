package progress

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ownPatterns are the user's patterns; nil for those that are not given.
type ownPatterns struct {
	epochBegin, epochEnd, loadBegin, loadEnd *regexp.Regexp

	count, ended int // epochs seen by patterns without a number
}

func (p *ownPatterns) epochs() bool { return p.epochBegin != nil || p.epochEnd != nil }

func (o *Options) compile() (p ownPatterns, err error) {
	if (o.LoadBegin == "") != (o.LoadEnd == "") {
		return p, missing(o.LoadBegin)
	}
	for _, one := range []struct {
		option, expr string
		to           **regexp.Regexp
	}{
		{"--epoch-pattern", o.EpochPattern, &p.epochBegin}, {"--epoch-end-pattern", o.EpochEnd, &p.epochEnd},
		{"--load-begin", o.LoadBegin, &p.loadBegin}, {"--load-end", o.LoadEnd, &p.loadEnd},
	} {
		if one.expr == "" {
			continue
		}
		if *one.to, err = compile(one.option, one.expr); err != nil {
			return p, err
		}
	}
	return p, nil
}

// ownEpoch tries the user's patterns, without the label of the launcher and with it.
func (r *Reader) ownEpoch(at time.Duration, rank, line, rest []byte) {
	for _, text := range [][]byte{rest, line} {
		if r.own.epoch(at, text, r.own.epochEnd, true, &r.ranks, rank, &r.epochs) ||
			r.own.epoch(at, text, r.own.epochBegin, false, &r.ranks, rank, &r.epochs) || len(rank) == 0 {
			return
		}
	}
}

func (p *ownPatterns) epoch(at time.Duration, text []byte, re *regexp.Regexp, ends bool, ranks *ranks, rank []byte,
	e *epochs) bool {
	if re == nil {
		return false
	}
	loc := re.FindSubmatchIndex(text)
	if loc == nil {
		return false
	}
	if !ranks.heard(rank) {
		return true
	}
	o := observation{at: at, numbered: true, firm: true, ends: ends, begins: !ends, repeats: !ends, elapsed: -1}
	count := &p.count
	if ends {
		count = &p.ended
	}
	i := re.SubexpIndex("epoch")
	if i < 0 {
		i = firstGroup(re)
	}
	if i < 0 {
		o.number = float64(*count)
		if ends && p.epochBegin != nil && e.open {
			o.number = float64(e.cur.number)
		}
		*count++
	} else {
		number := group(text, loc, i)
		value, err := strconv.ParseFloat(string(number), 64)
		if err != nil || !(value >= 0 && value <= maxNumber) {
			return true
		}
		o.number, o.amount = value, bytes.ContainsAny(number, ".e")
	}
	step, err := strconv.ParseFloat(string(group(text, loc, re.SubexpIndex("step"))), 64)
	steps, _ := strconv.ParseFloat(string(group(text, loc, re.SubexpIndex("steps"))), 64)
	if err == nil && step >= 0 && steps >= 0 {
		o.place = place{known: true, at: step, of: steps}
	}
	e.line(&o)
	return true
}

// group is the text of a group, nil if the pattern or the match does not have it.
func group(line []byte, loc []int, i int) []byte {
	if i < 0 || loc[2*i] < 0 {
		return nil
	}
	return line[loc[2*i]:loc[2*i+1]]
}

const maxModel = 256

// nameOf is a model's name, valid as an attribute of a span.
func nameOf(text []byte) string {
	return strings.TrimRight(strings.ToValidUTF8(string(text[:min(len(text), maxModel)]), ""), ". ")
}

func (r *Reader) ownLoad(at time.Duration, line []byte) {
	if loc := r.own.loadBegin.FindSubmatchIndex(line); loc != nil {
		r.loads.begin(at, 0, nameOf(group(line, loc, r.own.loadBegin.SubexpIndex("model"))))
	} else if loc := r.own.loadEnd.FindSubmatchIndex(line); loc != nil {
		r.loads.end(at, 0, nameOf(group(line, loc, r.own.loadEnd.SubexpIndex("model"))), 0)
	}
}
