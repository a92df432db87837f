package sqlstore

import "github.com/semel-go/semel/sqlstore/internal/inspect"

// MostSampled is up to which number a Sampled counts.
const MostSampled = inspect.MostSampled

// What people and metrics ask a Store for; see the methods that return them.
type (
	Known          = inspect.Known
	KnownKey       = inspect.KnownKey
	Upkeep         = inspect.Upkeep
	Mismatch       = inspect.Mismatch
	MismatchKind   = inspect.MismatchKind
	Looked         = inspect.Looked
	Sampled        = inspect.Sampled
	SampledRows    = inspect.SampledRows
	SampledReaping = inspect.SampledReaping
	SampledTable   = inspect.SampledTable
)

// The kinds of records that contradict a row.
const (
	MismatchMarker = inspect.MismatchMarker
	MismatchStream = inspect.MismatchStream
	MismatchCause  = inspect.MismatchCause
)
