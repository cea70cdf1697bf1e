// Package nearest guesses which word a misspelled one was meant to be.
package nearest

import "strings"

// Word is the one of the right words that a wrong one was most likely meant to be, "" when none is like it.
func Word(wrong string, right []string) string {
	if len(wrong) > 64 {
		return ""
	}
	wrong = strings.ToLower(wrong)
	best, least := "", 0
	for _, word := range right {
		d := distance(wrong, word)
		if d <= (max(len(wrong), len(word))+1)/2 && (best == "" || d < least) {
			best, least = word, d
		}
	}
	return best
}

// distance counts the bytes to insert, remove, replace or swap with a neighbour that lie between two words.
func distance(a, b string) int {
	before, above := make([]int, len(b)+1), make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
