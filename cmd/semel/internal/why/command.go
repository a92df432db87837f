package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/store"
)

// Command is a command line, one element per word.
type Command []string

// because adds the flag --because, whose value the user must fill in.
func (c Command) because() Command { return append(slices.Clip(c), "--because", "WHY") }

// command returns a semel command with the flags that select the store of the facts.
func (f *Facts) command(words ...string) Command {
	return slices.Concat(Command{"semel"}, words, f.Where)
}

// rowCommand returns a command for a row. act returns a command that changes a row and needs a reason. name
// is the command's name, with blanks between the words.
func (f *Facts) rowCommand(name string, r *store.StoredRow) Command {
	return f.command(append(strings.Fields(name), fmt.Sprint(r.Number))...)
}

func (f *Facts) act(name string, r *store.StoredRow) Command { return f.rowCommand(name, r).because() }

func (f *Facts) show(r *store.StoredRow) Command {
	return f.rowCommand(f.verb("messages show", "intents show"), r)
}
