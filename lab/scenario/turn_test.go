package scenario

import (
	"fmt"
	"testing"
	"time"

	"github.com/stallspan/stallspan/lab/pipeline"
)

// has returns the value of each dimension in a stage of a variant.
func has(v *Variant, s *Stage) map[dimension]string {
	of := map[dimension]string{device: string(v.Kind)}
	if s.Idle {
		return of
	}
	of[reading] = string(s.Plan.Reading)
	if !s.load() {
		of[style], of[accelerator] = string(s.Plan.Style), fmt.Sprint(s.Plan.Spin)
	}
	if v.Whole != "" {
		of[order], of[length] = string(v.Whole), fmt.Sprint(s.Length > 10*time.Second)
	}
	for _, b := range v.Neighbours {
		if b.Kind != "" {
			of[noise] = string(b.Noise.Reading)
		}
	}
	return of
}

const someSeeds, someVariants = 20, 5

// Each value of a dimension meets each value of another dimension in some seed.
func TestEachMeetsEach(t *testing.T) {
	for _, c := range Cases() {
		single, pairs := map[string]map[string]bool{}, map[string]map[string]bool{}
		add := func(to map[string]map[string]bool, key, value string) {
			if to[key] == nil {
				to[key] = map[string]bool{}
			}
			to[key][value] = true
		}
		between := map[string][2]string{}
		for i := range someSeeds * someVariants {
			v := c.Variant(Seed(uint64(i/someVariants), i%someVariants), false)
			for at := range v.Stages {
				of := has(&v, &v.Stages[at])
				for a, x := range of {
					key := fmt.Sprint(at, a)
					add(single, key, x)
					for b, y := range of {
						if a < b {
							pair := fmt.Sprint(at, a, b)
							add(pairs, pair, x+" "+y)
							between[pair] = [2]string{key, fmt.Sprint(at, b)}
						}
					}
				}
			}
		}
		for pair, of := range between {
			if want := len(single[of[0]]) * len(single[of[1]]); len(pairs[pair]) != want {
				t.Errorf("%s: %d of %d combinations of %s: %v", c.Name, len(pairs[pair]), want, pair, pairs[pair])
			}
		}
	}
}

// These are the dimensions.
func TestChoices(t *testing.T) {
	for name, want := range map[string]map[dimension]int{
		"storage_spinning": {device: 1, style: 3, reading: 4, accelerator: 2},
		"storage_network":  {device: 1, style: 3, reading: 3, accelerator: 2},
		"cpu_few_workers":  {device: 2, style: 3, reading: 2, accelerator: 2},
		"gpu_beside_io":    {device: 2, style: 2, reading: 2, accelerator: 2, noise: 2},
		"load_cold_read":   {device: 3, reading: 3},
		"io_storm":         {device: 3, reading: 2},
		"mixed":            {device: 3, style: 3, reading: 2, accelerator: 2},
		"phase_change":     {device: 2, style: 3, reading: 4, accelerator: 2, order: 2, length: 2},
	} {
		got := map[dimension]map[string]bool{}
		for i := range someSeeds * someVariants {
			v := caseOf(t, name).Variant(Seed(uint64(i/someVariants), i%someVariants), false)
			for of, x := range has(&v, &v.Stages[len(v.Stages)-1]) {
				if got[of] == nil {
					got[of] = map[string]bool{}
				}
				got[of][x] = true
			}
		}
		for of, n := range want {
			if len(got[of]) != n {
				t.Errorf("%s: %d of %s, want %d: %v", name, len(got[of]), of, n, got[of])
			}
		}
	}
}

// Within a seed the choices of each dimension take turns, and a replacement has the same choices.
func TestVariantsTakeTurns(t *testing.T) {
	for _, c := range Cases() {
		for seed := range uint64(someSeeds) {
			for of, values := range turns(&c, seed) {
				n := distinct(values)
				for from := 0; from+n <= len(values); from += n {
					if got := distinct(values[from : from+n]); got != n {
						t.Errorf("%s, seed %d: %d of %s from variant %d on, of %d: %v", c.Name, seed, got, of, from, n, values)
					}
				}
			}
			first, again := c.Variant(Seed(seed, 1), false), c.Variant(Retry(Seed(seed, 1)), false)
			if a, b := has(&first, &first.Stages[0]), has(&again, &again.Stages[0]); fmt.Sprint(a) != fmt.Sprint(b) {
				t.Errorf("%s, seed %d: %v is followed by %v", c.Name, seed, a, b)
			}
		}
	}
}

// turns returns the values of a case's variants of a seed in order.
func turns(c *Case, seed uint64) map[dimension][]string {
	values := map[dimension][]string{}
	for i := range 24 {
		v := c.Variant(Seed(seed, i), false)
		for of, x := range has(&v, &v.Stages[0]) {
			values[of] = append(values[of], x)
		}
	}
	return values
}

func distinct(values []string) int {
	seen := map[string]bool{}
	for _, v := range values {
		seen[v] = true
	}
	return len(seen)
}

func caseOf(t *testing.T, name string) *Case {
	t.Helper()
	for _, c := range Cases() {
		if c.Name == name {
			return &c
		}
	}
	t.Fatalf("there is no case called %s", name)
	return nil
}

// Work that reads from memory uses the page cache: O_DIRECT and io_uring mean nothing there.
func TestMemoryIsReadThrough(t *testing.T) {
	for _, c := range Cases() {
		for i := range someSeeds * someVariants {
			v := c.Variant(Seed(uint64(i/someVariants), i%someVariants), false)
			for _, s := range v.Stages {
				direct := s.Plan.Reading == pipeline.Direct || s.Plan.Reading == pipeline.Uring
				if direct && (s.From != Cold || v.Kind == "memory" || v.Kind == "local") {
					t.Errorf("%s-%d reads %s from %s %s", v.Name, v.Seed, s.Plan.Reading, v.Kind, s.From)
				}
			}
		}
	}
}
