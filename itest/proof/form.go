package proof

import (
	"context"
	"flag"
	"time"
)

// Form is a [Room] with a single run. The run has a full size and, for the flag -quick, a short size.
type Form[P any, L Ledger] struct {
	// Title names the run in errors. Within is the time limit of the run. If Lasts is set, the duration that
	// Lasts returns is added.
	Title  string
	Within time.Duration
	Lasts  func(P) time.Duration
	// Sizes is the configuration P with the full size. A field with the tag `flag` becomes a flag, see the function
	// [Sizes].
	Sizes P
	// Quick returns the short size. Quick is nil if the fault test has no short size.
	Quick func(P) P
	// Faults are the names of the faults that the flag -plant accepts. Choose, if set, copies the seed and the fault
	// into the configuration.
	Faults []string
	Choose func(*P, Choice)
	// Prove is the method Run of the configuration.
	Prove func(P, context.Context, Stage) L

	quick bool
}

// Flags implements Room.
func (f *Form[P, L]) Flags(flags *flag.FlagSet) {
	Sizes(flags, &f.Sizes)
	if f.Quick != nil {
		flags.BoolVar(&f.quick, "quick", false, "use the sizes of the short form (a minute); overrides other flags")
	}
}

// Plants implements Room.
func (f *Form[P, L]) Plants() []string { return f.Faults }

// Runs implements Room.
func (f *Form[P, L]) Runs(c Choice) []Run {
	p := f.Sizes
	if f.quick {
		p = f.Quick(p)
	}
	if f.Choose != nil {
		f.Choose(&p, c)
	}
	within := f.Within
	if f.Lasts != nil {
		within += f.Lasts(p)
	}
	prove := func(ctx context.Context, s Stage) L { return f.Prove(p, ctx, s) }
	return []Run{{Title: f.Title, Within: within, Prove: Proving(prove)}}
}
