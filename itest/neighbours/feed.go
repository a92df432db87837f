//go:build unix

package neighbours

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
)

// Feed is what the files hold: messages 0 to IDs-1, each with its copies.
type Feed struct {
	IDs  int
	Seed uint64
}

// kind is what becomes of a message.
type kind int

// In every twenty messages one is of each kind but plain.
const (
	plain       kind = iota
	unmet            // its guarded effect meets no row: parked
	conflicting      // comes with two contents: one takes effect, the other is parked
	nameless         // has no id: parked
)

func kindOf(i int) kind {
	switch i % 20 {
	case 3:
		return unmet
	case 7:
		return conflicting
	case 11:
		return nameless
	}
	return plain
}

func id(i int) string { return fmt.Sprintf("m%d", i) }

// of counts the messages of a kind.
func (f Feed) of(k kind) (n int) {
	for i := range f.IDs {
		if kindOf(i) == k {
			n++
		}
	}
	return n
}

// effects are how many messages take effect.
func (f Feed) effects() int { return f.of(plain) + f.of(conflicting) }

// rows are what is parked when so many files were read: a message without id is
// told by its place.
func (f Feed) rows(files int) int { return f.of(unmet) + f.of(conflicting) + files*f.of(nameless) }

// aside are the deliveries of one file that are parked, or copies of what is,
// whichever content of a conflicting message came first.
func (f Feed) aside() int { return 2*f.of(unmet) + 2*f.of(conflicting) + f.of(nameless) }

// later are those of them that are copies on a parked row when the rows that
// were retried are done.
func (f Feed) later() int { return f.aside() - 2*f.of(unmet) }

// lines are the deliveries in an order of the file's own.
func (f Feed) lines(file uint64) (lines []string) {
	add := func(times, i, amount int) {
		for range times {
			lines = append(lines, fmt.Sprintf(`{"headers":{"id":%q},"body":{"amount":%d}}`, id(i), amount))
		}
	}
	for i := range f.IDs {
		switch kindOf(i) {
		case unmet:
			add(2, i, 0)
		case conflicting:
			add(2, i, i)
			add(2, i, f.IDs+i)
		case nameless:
			lines = append(lines, fmt.Sprintf(`{"headers":{},"body":{"amount":%d}}`, i))
		default:
			add(1+i%2, i, i+1)
		}
	}
	r := rand.New(rand.NewPCG(f.Seed, file))
	r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return lines
}

// part are the lines of the n-th of so many parts.
func part(lines []string, n, parts int) []string {
	return lines[len(lines)*n/parts : len(lines)*(n+1)/parts]
}

// extend writes lines to the end of a file, which is made if it is missing.
func extend(path string, lines []string) error {
	to, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer to.Close()
	if _, err := to.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		return err
	}
	return to.Close()
}
