package consumer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/internal/machine"
)

// String is its word in a policy file.
func (o OnFiltered) String() string {
	return enum.Name([]string{OnFilteredSkip: "skip", OnFilteredPark: "park", OnFilteredDeadLetter: "dead_letter"}, o, "OnFiltered")
}

// Filter selects the messages of a shared topic that belong to the consumer: those that
// meet every condition. The zero value selects all. The filter is applied before the
// identity of a message is determined. Config.OnFiltered says what happens to the others.
type Filter struct {
	// Types lists the types that the consumer takes (see Config.Type). A message
	// without a type is not taken.
	Types []string
	// Headers are, by the name of a header, the values of which it must have
	// one, byte for byte. Names are compared without regard to case; of a header
	// that stands several times one value suffices.
	Headers map[string][]string
}

// OnFiltered is what happens to a message that Config.Filter excludes.
type OnFiltered uint8

// What can become of it.
const (
	// OnFilteredSkip settles it and counts it as skipped; nothing is written. The
	// default.
	OnFilteredSkip OnFiltered = iota
	// OnFilteredPark sets it aside for a person, with reason "not for this consumer".
	OnFilteredPark
	// OnFilteredDeadLetter copies it to the source's dead letters, then sets it
	// aside in the store, with reason "not for this consumer".
	OnFilteredDeadLetter
)

// ending is the machine's name for it.
func (o OnFiltered) ending() machine.Ending {
	switch o {
	case OnFilteredPark:
		return machine.EndPark
	case OnFilteredDeadLetter:
		return machine.EndDeadLetter
	}
	return machine.EndSkip
}

// takesAll reports whether no condition is set.
func (o *Filter) takesAll() bool { return len(o.Types) == 0 && len(o.Headers) == 0 }

// Validate reports every condition that no message could meet, at once; nil if
// there is none.
func (o Filter) Validate() error {
	var faults []error
	if slices.Contains(o.Types, "") {
		faults = append(faults, errors.New("an empty type matches nothing: a message without a type has none of them; leave it out"))
	}
	names := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
		folded := strings.ToLower(name)
		switch before, twice := names[folded]; {
		case name == "":
			faults = append(faults, errors.New("a header has no name; write the name of one"))
		case twice:
			faults = append(faults, fmt.Errorf("the headers %q and %q are one, as case does not count; write their values under one name", before, name))
		case len(o.Headers[name]) == 0:
			faults = append(faults, fmt.Errorf("header %q has no values, so that no message could match; write one, or leave it out", name))
		}
		names[folded] = name
	}
	return errors.Join(faults...)
}
