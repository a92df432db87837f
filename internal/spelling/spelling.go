// Package spelling finds the word that was probably meant.
package spelling

// Nearest is the known word that takes the fewest insertions, deletions and
// replacements to become; the first of several. It is empty if all take most or
// more, or as many as typing the word anew.
func Nearest(word string, known []string, most int) string {
	best := ""
	for _, k := range known {
		if d := distance(word, k); d < most && d < len(k) {
			best, most = k, d
		}
	}
	return best
}

// longest is what is compared of a word: longer ones are far from everything.
const longest = 64

// distance counts insertions, deletions and replacements between two words, by
// bytes (Wagner and Fischer, 1974).
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
