// Package linediff shows what differs between two payloads, line by line.
package linediff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// most is how many pairs of lines are compared at most: texts that need more are too long to be
// read as a difference.
const most = 4 << 20

// around is how many lines are shown around a change.
const around = 3

// Payloads is a unified difference of two payloads, JSON as it is printed for people; false
// where there is none to be read, because one is no text, or they are too long.
func Payloads(before, after []byte) (string, bool) {
	if !utf8.Valid(before) || !utf8.Valid(after) {
		return "", false
	}
	return Lines(Pretty(before), Pretty(after))
}

// Pretty is JSON on several lines; anything else as it is.
func Pretty(body []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, bytes.TrimSpace(body), "", "  ") != nil {
		return string(body)
	}
	return b.String()
}

// line is a line with what becomes of it: ' ' stays, '-' goes, '+' comes.
type line struct {
	sign byte
	text string
}

// Lines is a unified difference of two texts, empty where they have the same lines; false where
// they are too long.
func Lines(before, after string) (string, bool) {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	var head, tail []line
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head = append(head, line{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail = append([]line{{' ', a[len(a)-1]}}, tail...)
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 0 && len(b) == 0 {
		return "", true
	}
	if (len(a)+1)*(len(b)+1) > most {
		return "", false
	}
	return hunks(append(append(head, changes(a, b)...), tail...)), true
}

// changes is the shortest way from lines a to lines b, by the longest common subsequence.
func changes(a, b []string) []line {
	common := make([][]int32, len(a)+1)
	for i := range common {
		common[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var all []line
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			all = append(all, line{' ', a[i]})
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common[i+1][j] >= common[i][j+1]):
			all = append(all, line{'-', a[i]})
			i++
		default:
			all = append(all, line{'+', b[j]})
			j++
		}
	}
	return all
}

// hunks prints the changed lines with some around them.
func hunks(all []line) string {
	var out strings.Builder
	old, new := 1, 1
	for from := 0; from < len(all); {
		if all[from].sign == ' ' && !changedWithin(all, from) {
			old, new, from = old+1, new+1, from+1
			continue
		}
		to := from
		for to < len(all) && (all[to].sign != ' ' || changedWithin(all, to)) {
			to++
		}
		minus, plus := 0, 0
		var body strings.Builder
		for _, l := range all[from:to] {
			fmt.Fprintf(&body, "%c%s\n", l.sign, l.text)
			if l.sign != '+' {
				minus++
			}
			if l.sign != '-' {
				plus++
			}
		}
		fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n%s", old, minus, new, plus, &body)
		old, new, from = old+minus, new+plus, to
	}
	return out.String()
}

// changedWithin reports whether a change is so near that a line is shown.
func changedWithin(all []line, at int) bool {
	for i := max(0, at-around); i < min(len(all), at+around+1); i++ {
		if all[i].sign != ' ' {
			return true
		}
	}
	return false
}
