package proof

import (
	"context"
	"flag"
	"time"
)

// Form is a [Room] with one run, in its full size and, with -quick, in a short one.
type Form[P any, L Ledger] struct {
	// Title tells the run from others, Within is how long it may take.
	Title  string
	Within time.Duration
	// Sizes are those of the full proof. Fields with a tag `flag` are flags, see [Sizes].
	Sizes P
	// Quick returns the short form; nil if there is none.
	Quick func(P) P
	// Faults can be planted. Choose, if set, takes seed and fault over into the proof.
	Faults []string
	Choose func(*P, Choice)
	// Prove is the method Run of the proof.
	Prove func(P, context.Context, Stage) (L, error)

	quick bool
}

// Flags implements Room.
func (f *Form[P, L]) Flags(flags *flag.FlagSet) {
	Sizes(flags, &f.Sizes)
	if f.Quick != nil {
		flags.BoolVar(&f.quick, "quick", false, "take the sizes of the form that takes a minute, whatever other flags say")
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
	prove := func(ctx context.Context, s Stage) (L, error) { return f.Prove(p, ctx, s) }
	return []Run{{Title: f.Title, Within: f.Within, Prove: Proving(prove)}}
}
