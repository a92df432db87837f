package operate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// named are the errors of the library whose texts name it.
var named = []error{
	semel.ErrChanged, semel.ErrConflict, semel.ErrState, semel.ErrHalted, semel.ErrUnfinished, semel.ErrOld, semel.ErrBehind, semel.ErrSchema,
	semel.ErrUnsupported, semel.ErrIdentityChanged, semel.ErrForeignOwner, semel.ErrClosed, store.ErrClaimLost,
}

// prefix is how such a text begins.
const prefix = "semel: "

// plain is the text of an error, in which those of the library go without the
// prefix that names it: in the middle of a line it says nothing.
func plain(err error) string { return unnamed(err.Error()) }

// plainOf is plain for an error about a row, where the line names the row before it.
func plainOf(row int64, err error) string {
	return strings.TrimPrefix(plain(err), fmt.Sprintf("row %d: ", row))
}

func unnamed(text string) string {
	for _, inner := range named {
		text = strings.ReplaceAll(text, inner.Error(), strings.TrimPrefix(inner.Error(), prefix))
	}
	return text
}

// ofARow finds a text that is about a row.
var ofARow = regexp.MustCompile(`\brow \d+\b`)

// Plain is a line of an error as it is printed: without the library's name, which stands
// before the line, with the consumer's name once, and without a word of a row's state where
// it is about no row.
func Plain(line string) string {
	line = strings.TrimPrefix(line, prefix)
	line = onceNamed(line)
	line = unnamed(line)
	if state := ": " + strings.TrimPrefix(semel.ErrState.Error(), prefix); !ofARow.MatchString(line) {
		line = strings.ReplaceAll(line, state, "")
	}
	return line
}

// onceNamed leaves out who an error is of where the error itself says that.
func onceNamed(line string) string {
	who, rest, ok := strings.Cut(line, ": "+prefix)
	name, ofConsumer := strings.CutPrefix(who, "consumer ")
	switch {
	case !ok || !ofConsumer || strings.Contains(name, ": "):
		return line
	case strings.HasPrefix(rest, "consumer "+name) || strings.HasPrefix(rest, "consumer "+strconv.Quote(name)):
		return rest
	}
	return who + ": " + rest
}
