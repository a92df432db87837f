package naming

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/spelling"
)

// Claim records the owner of the consumer in the store. If the store has a record of another owner, Claim returns an
// error if Exclusive is set. Without Exclusive, Claim logs the difference, unless only handler types were added.
func (n *Names) Claim(ctx context.Context) error {
	store, owner := n.Kept, n.Owner
	if store == nil || owner == "" {
		return nil
	}
	was, err := store.Owner(ctx, n.Consumer)
	switch {
	case err != nil:
		return fmt.Errorf("semel: consumer %q cannot start: %w", n.Consumer, err)
	case was == owner:
		return nil
	case was != "" && n.Exclusive:
		return fmt.Errorf("semel: consumer %q cannot start: its name belongs to %s, and this is %s: of two services under one name each loses the messages that the other takes; "+
			"give this one a name of its own, or, if it takes the other's place, release the name (semel consumers identity release): %w", n.Consumer, was, owner, semel.ErrForeignOwner)
	case was != "" && !admin.Grown(was, owner):
		n.Logger.Warn("the consumer's handler types or owner differ from its last start; if you did not change them, another service uses this name, and each misses the messages that the other takes: give one of them another name",
			"consumer", n.Consumer, "was", was, "is", owner)
	}
	set, err := store.SetOwner(ctx, n.Consumer, was, owner)
	if err != nil && !n.Exclusive && n.isTemporary(ctx, err) {
		n.Logger.Warn("whose the consumer is could not be recorded; the next start does that", "consumer", n.Consumer, "error", err)
		return nil
	}
	if err == nil && !set && n.Exclusive { // another process recorded its owner first
		err = fmt.Errorf("its owner was changed while it was started; try again: %w", semel.ErrForeignOwner)
	}
	if err != nil {
		return fmt.Errorf("semel: consumer %q cannot start: %w", n.Consumer, err)
	}
	return nil
}

// WarnSimilar warns if the consumer is new and the store has a consumer with nearly the same name. After a consumer was
// renamed, all messages would be new again.
func (n *Names) WarnSimilar(ctx context.Context) error {
	store := n.Kept
	if store == nil || n.Generation > 0 {
		return nil
	}
	names, err := store.Consumers(ctx)
	if err != nil {
		return fmt.Errorf("semel: consumer %q cannot start: %w", n.Consumer, err)
	}
	if similar := similarTo(n.Consumer, names); similar != "" {
		n.Logger.Warn("the consumer's name is new, and the store has one of nearly that name: if it was renamed, every message is new and takes effect again; give it its former name back",
			"consumer", n.Consumer, "similar", similar)
	}
	return nil
}

// mostDifferent is the maximum number of letters that may differ in a similar name. In short names, at most every third
// letter may differ.
const mostDifferent = 2

// similarTo returns the element of names that is nearly the same as name. If no element is similar, or if names
// contains name itself, similarTo returns "".
func similarTo(name string, names []string) string {
	if slices.Contains(names, name) {
		return ""
	}
	own := foldName(name)
	for _, other := range names {
		their := foldName(other)
		if own == their || spelling.Nearest(own, []string{their}, min(mostDifferent, len(own)/3)+1) != "" {
			return other
		}
	}
	return ""
}

// foldName returns a name in lower case without punctuation.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}
