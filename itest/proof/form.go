package proof

import (
	"context"
	"flag"
	"time"
)

// Form is a [Room] with one run, which has a full size and, with -quick, a short one.
type Form[P any, L Ledger] struct {
	// Title names the run in errors. The run may take Within and, if Lasts is set, the time that
	// Lasts returns for the sizes of the run.
	Title  string
	Within time.Duration
	Lasts  func(P) time.Duration
	// Sizes are the proof's fields in full size. Fields with a tag `flag` become flags, see [Sizes].
	Sizes P
	// Quick returns the short form; nil if there is none.
	Quick func(P) P
	// Faults are the names of faults that can be planted. Choose, if set, copies seed and fault
	// into the proof.
	Faults []string
	Choose func(*P, Choice)
	// Prove is the method Run of the proof.
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
