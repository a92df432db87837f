package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/store"
)

// Command is a command of semel, word by word, without the flags that choose a policy or a store.
type Command []string

// withReason adds the flag --because, whose value the user must fill in.
func (c Command) withReason() Command { return append(slices.Clip(c), "--because", "WHY") }

// rowCommand returns a command that shows a row. The parameter name is the name of the command, with blanks
// between the words.
func rowCommand(name string, r *store.StoredRow) Command {
	return append(strings.Fields(name), fmt.Sprint(r.Number))
}

func change(name string, r *store.StoredRow) Command { return rowCommand(name, r).withReason() }

// runCommand returns the command that runs a consumer. Without a policy, the method returns no command,
// because only the owner of the program can then start the consumer.
func (f *Facts) runCommand(consumer string) []Command {
	if f.Bare {
		return nil
	}
	return []Command{{"run", "--consumer", consumer}}
}

func (f *Facts) showCommand(r *store.StoredRow) Command {
	return rowCommand(f.verb("messages show", "intents show"), r)
}
