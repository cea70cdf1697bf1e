package config

import "strings"

// Nearest returns the known word that is most similar to a misspelled one, or "" if none is similar: at most
// one edit for three letters, rounded.
func Nearest(wrong string, known []string) string {
	if len(wrong) > 64 {
		return ""
	}
	wrong = strings.ToLower(wrong)
	best, fewest := "", 0
	for _, word := range known {
		d := distance(wrong, word)
		longer := max(len(wrong), len(word))
		if d <= (longer+1)/3 && (best == "" || d < fewest) {
			best, fewest = word, d
		}
	}
	return best
}

// distance returns the number of edits between two words: bytes inserted, removed, replaced, or swapped with the next
// one.
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
