// Package spelling suggests a known word that is similar to a misspelt word.
package spelling

// Nearest returns the known word with the smallest edit distance to word. If several words have the same distance,
// Nearest returns the first of these words. A word is similar only if it needs fewer changes than the limit most, and
// fewer changes than it has letters. If no known word is similar, Nearest returns an empty string.
func Nearest(word string, known []string, most int) string {
	best := ""
	for _, k := range known {
		if d := distance(word, k); d < most && d < len(k) {
			best, most = k, d
		}
	}
	return best
}

// longest is the maximum length of words that are compared.
const longest = 64

// distance returns the number of insertions, deletions and replacements between two words, in bytes (Wagner and
// Fischer, 1974).
func distance(a, b string) int {
	if len(a) > longest {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
