// Package naming checks, when a consumer starts, that its name is still used in the same way. For each consumer name,
// the store records how identities are found, and which owner uses the name.
package naming

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Names compares how a consumer finds identities, and its owner, with the records of the store for the
// consumer's name.
type Names struct {
	guard.Guard
	Store namedStore
	// Kept stores derivations (the rules that form identities) and owners. If the store does not implement
	// admin.Derivations, Kept is nil and identities and owners are not checked.
	Kept admin.Derivations
	// Marked means that messages are marked under their identities. Versions means that messages have
	// versions.
	Marked, Versions bool
	// Identity describes how the identity is found. Previous describes how the previous identity is found. If an
	// identity has no method Derivation, its description is empty. Previous is also empty if there is no previous
	// identity.
	Identity, Previous string
	// Owner is the owner of the consumer, or empty if it is unknown. Exclusive means that no other owner may
	// use the name.
	Owner     string
	Exclusive bool
	// Generation is the number of the generation in which the consumer works.
	Generation int64
	// SetGenerations gets the numbers of the identity and of the previous identity.
	SetGenerations func(now, former int64)

	// Recorded is set when everything is recorded and Record need not be called again.
	Recorded atomic.Bool
}

// namedStore contains the methods that Names needs of every store.
type namedStore interface {
	Scope(ctx context.Context, consumer, source string, generation int64) (int64, error)
	Classify(err error) store.Class
}

// shortenText returns the text of a derivation (the rule that forms identities) as the store saves it: a text that is
// too long is cut and a hash is added.
func shortenText(text string) string {
	if len(text) <= admin.MaxDerivation {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return strings.ToValidUTF8(text[:admin.MaxDerivation/2], "") + "... sha256 " + hex.EncodeToString(sum[:])
}

// Record records in the store how identities are found. If the record of the store differs, so that the consumer must
// not start, Record returns an error. If the parameter onlyRead is true, Record writes nothing: if a record is missing,
// Record returns an error, unless the store has no record of the consumer at all.
func (n *Names) Record(ctx context.Context, onlyRead bool) error {
	store, ask := n.Kept, n.configuredDerivation()
	switch {
	case store == nil || !n.Marked:
	case ask.Text == "":
		n.Logger.Info("the identity does not tell how it is found, so that a change of it is not noticed: give its type a method Derivation() string", "consumer", n.Consumer)
	default:
		return n.deriveIn(ctx, store, ask, onlyRead)
	}
	n.Recorded.Store(true)
	return nil
}

// configuredDerivation returns the derivation (the rule that forms identities) with which the consumer starts, and the
// text of its previous derivation.
func (n *Names) configuredDerivation() (ask derivationAsk) {
	ask.Consumer, ask.Text = n.Consumer, shortenText(n.Identity)
	ask.previous = shortenText(n.Previous)
	return ask
}

// derivationAsk is a derivation (a rule that forms identities) that must be recorded if the store has no record of it.
type derivationAsk struct {
	admin.Derivation
	previous string
}

// triesToDerive is the number of attempts of Record if other processes change the records of the consumer at the same
// time.
const triesToDerive = 10

func (n *Names) deriveIn(ctx context.Context, store admin.Derivations, ask derivationAsk, onlyRead bool) error {
	for range triesToDerive {
		all, err := store.Derivations(ctx, n.Consumer)
		if err != nil {
			return fmt.Errorf("semel: consumer %q cannot start: %w", n.Consumer, err)
		}
		missing, err := ask.settle(all)
		switch {
		case err != nil:
			return fmt.Errorf("semel: consumer %q cannot start: %w", n.Consumer, err)
		case missing == nil:
			now, former := ask.generations(all)
			n.SetGenerations(now, former)
			n.Recorded.Store(true)
			return nil
		case n.Versions && missing.Generation > 0:
			return fmt.Errorf("semel: consumer %q cannot start: it has versions, and its identity (%s) is another than before (%s): the streams of another identity begin anew, and their versions would take effect again; give it its former identity back, or start a consumer of another name where this one has ended: %w", n.Consumer, ask.Text, texts(all), semel.ErrIdentityChanged)
		case onlyRead && len(all) == 0 && ask.previous == "":
			return nil // the rule will be recorded with generation 0
		case onlyRead:
			return fmt.Errorf("semel: consumer %q: how its identities are found is not recorded yet, and the store cannot do that beside your transaction; call Check before you open it: %w", n.Consumer, semel.ErrUnsupported)
		}
		if err := n.keepsGeneration(ctx, missing, all); err != nil {
			return err
		}
		added, err := store.AddDerivation(ctx, *missing)
		if err != nil && missing.Generation == 0 && ask.previous == "" && n.isTemporary(ctx, err) {
			n.Logger.Warn("how the identity is found could not be recorded, so that a change of it is not noticed before the next start", "consumer", n.Consumer, "error", err)
			return nil // the rule will be recorded with generation 0
		}
		if err != nil {
			return fmt.Errorf("semel: consumer %q cannot start: %w", n.Consumer, err)
		}
		if added && len(all) > 0 {
			n.Logger.Info("the identity is found in another way from now on", "consumer", n.Consumer, "derivation", missing.Text, "former", ask.previous)
		}
	}
	return fmt.Errorf("semel: consumer %q cannot start: other processes kept changing the record of its identities; start one process at a time", n.Consumer)
}

// keepsGeneration returns an error if a second derivation (rule that forms identities) must be recorded but the store
// can mark under one derivation only. With two recorded derivations, the store could mark under neither of the two.
func (n *Names) keepsGeneration(ctx context.Context, missing *admin.Derivation, all []admin.Derivation) error {
	if missing.Generation == 0 {
		return nil
	}
	if _, err := n.Store.Scope(ctx, n.Consumer, "", missing.Generation); errors.Is(err, semel.ErrUnsupported) {
		return fmt.Errorf("semel: consumer %q cannot start: its identity (%s) is another than before (%s), and where its markers lie one table has the ids of one identity; give it its former identity back, or start a consumer of another name where this one has ended: %w", n.Consumer, missing.Text, texts(all), err)
	}
	return nil // writing the first marker reports any other error of Scope
}

// isTemporary reports whether an error of the store may be temporary, such as contention. After a temporary error, a
// start continues if it does not need the store's response.
func (n *Names) isTemporary(ctx context.Context, err error) bool {
	class := n.Store.Classify(err)
	return ctx.Err() == nil && (class == store.ClassContended || class == store.ClassDown)
}

// settle returns the derivation (rule that forms identities) that must be recorded before the consumer may start, or
// nil if all derivations are recorded. If the consumer must not start, the method settle returns an error.
func (a *derivationAsk) settle(all []admin.Derivation) (missing *admin.Derivation, err error) {
	own, former := find(all, a.Text), find(all, a.previous)
	switch {
	case len(all) == 0 && a.previous != "": // the markers are older than the recording of derivations
		return &admin.Derivation{Consumer: a.Consumer, Text: a.previous, Former: admin.NoFormer}, nil
	case a.previous != "" && former == nil:
		return nil, fmt.Errorf("the former identity (%s) was never recorded for it, but %s: name what it was, or remove the former one: %w", a.previous, texts(all), semel.ErrIdentityChanged)
	case own != nil && own.Retired:
		return nil, fmt.Errorf("its identity (%s) was retired, and what came since is not marked under it: name the present one (%s) as the former identity and take the retirement back (semel consumers identity retire --undo): %w", a.Text, texts(all), semel.ErrIdentityChanged)
	}
	for i := range all {
		if d := &all[i]; !d.Retired && d.Text != a.Text && d.Text != a.previous && (own == nil || d.Former != own.Generation) {
			return nil, a.refusalError(d)
		}
	}
	if own != nil {
		return nil, nil
	}
	missing = &admin.Derivation{Consumer: a.Consumer, Text: a.Text, Former: admin.NoFormer}
	for i := range all {
		missing.Generation = max(missing.Generation, all[i].Generation+1)
	}
	if former != nil {
		missing.Former = former.Generation
	}
	return missing, nil
}

// refusalError returns the error for a recorded derivation (rule that forms identities) that the consumer no longer
// uses.
func (a *derivationAsk) refusalError(d *admin.Derivation) error {
	return fmt.Errorf("its messages are marked under the identity %s, recorded %s, and would be new under %s, so that each takes effect again: "+
		"write what it was as the former identity (identity.previous, Config.PreviousIdentity), or, when none of them can come any more, retire it (semel consumers identity retire): %w",
		d.Text, d.First.UTC().Format("2006-01-02"), a.Text, semel.ErrIdentityChanged)
}

// generations returns the numbers of the current and of the previous derivation (rule that forms identities).
func (a *derivationAsk) generations(all []admin.Derivation) (now, former int64) {
	if d := find(all, a.previous); d != nil {
		former = d.Generation
	}
	return find(all, a.Text).Generation, former
}

// find returns the derivation with the given text, or nil if there is none in the slice all.
func find(all []admin.Derivation, text string) *admin.Derivation {
	if i := slices.IndexFunc(all, func(d admin.Derivation) bool { return d.Text == text }); i >= 0 {
		return &all[i]
	}
	return nil
}

// texts returns, for error messages, the texts of the derivations that are not retired.
func texts(all []admin.Derivation) string {
	var list []string
	for i := range all {
		if !all[i].Retired {
			list = append(list, all[i].Text)
		}
	}
	return strings.Join(list, "; ")
}

// Generations returns the numbers of the identity and of the previous identity that a start would use.
// Generations writes nothing.
func (n *Names) Generations(ctx context.Context) (now, former int64, err error) {
	store, ask := n.Kept, n.configuredDerivation()
	if store == nil || !n.Marked || ask.Text == "" {
		return 0, 0, nil
	}
	all, err := store.Derivations(ctx, n.Consumer)
	if err != nil {
		return 0, 0, fmt.Errorf("semel: consumer %q: %w", n.Consumer, err)
	}
	missing, err := ask.settle(all)
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("semel: consumer %q could not start: %w", n.Consumer, err)
	case missing != nil: // a start would record the missing derivation
		all = append(all, *missing)
	}
	if find(all, ask.Text) == nil { // Text will be recorded after the previous derivation
		return 1, 0, nil
	}
	now, former = ask.generations(all)
	return now, former, nil
}
