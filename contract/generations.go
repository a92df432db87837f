package contract

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/enum"
)

// GenerationState is what a generation of a consumer is.
type GenerationState uint8

// The states.
const (
	// GenerationBuilding: a rebuild fills it. A consumer has one such at most.
	GenerationBuilding GenerationState = iota + 1
	// GenerationActive: the consumer works in it. A consumer has one such.
	GenerationActive
	// GenerationOld: another was switched to, and it is kept.
	GenerationOld
	// GenerationDropped: what was kept of it is removed, or is being removed.
	GenerationDropped
)

// String is the state's name.
func (s GenerationState) String() string {
	return enum.Name([]string{GenerationBuilding: "building", GenerationActive: "active", GenerationOld: "old", GenerationDropped: "dropped"}, s, "GenerationState")
}

// StoredGeneration is a generation of a consumer.
type StoredGeneration struct {
	Number int64
	State  GenerationState
	// Since is since when it is in its state, Opened when it was made, by the store's clock.
	Since, Opened time.Time
	// By and Why say who opened it, and why; empty for the first.
	By, Why string
	// Fenced is for how much longer nobody may work in it, while a switch is under way.
	Fenced time.Duration
}

// LongestFence is how long a fence of a generation stands at most.
const LongestFence = 10 * time.Minute

// ErrGeneration: the generation is not the one that its consumer may work in now: another was
// switched to, or is about to be; nothing was done.
var ErrGeneration = errors.New("the consumer may not work in this generation now")

// Working is the generation in which a batch works. The zero value is of a consumer without
// generations, of which nothing is asked.
type Working struct {
	// Consumer is the name without a generation.
	Consumer string
	// Number is the generation, In the state that it must have: GenerationActive, or
	// GenerationBuilding for a rebuild; 0: nothing is asked.
	Number int64
	In     GenerationState
}

// Generations is an optional ability of a store: to keep which generation of a consumer is
// the one that it works in, and to hold its batches to it. A batch with TxOptions.Working
// begins, and commits, only while its generation has that state and is not fenced; otherwise
// Begin fails with ErrGeneration, of ClassDown, and nothing is open.
//
// What is kept of a generation stands under its own name, GenerationName.
type Generations interface {
	// Generations returns those of a consumer by number; none if it never had one. It cuts a
	// fence that ends later than LongestFence from now, which was set while the store's clock
	// was ahead, to LongestFence.
	Generations(ctx context.Context, consumer string) ([]StoredGeneration, error)
	// BeginGenerations makes generation 0 the active one of a consumer that has none.
	BeginGenerations(ctx context.Context, consumer string) error
	// OpenGeneration makes the next one, which is being built, and returns its number.
	// semel.ErrState: another is being built, or the consumer has none at all; nothing was
	// done. a is recorded as of a consumer.
	OpenGeneration(ctx context.Context, consumer string, a Act) (number int64, err error)
	// FenceGeneration keeps everybody from working in a generation that is building or
	// active, until so long from now by the store's clock, LongestFence at most, and returns
	// when no batch is open that began before. An error says that it may be fenced all the same, until
	// then: LiftFences ends it. semel.ErrState: it has another state, or is fenced
	// already; nothing was done.
	FenceGeneration(ctx context.Context, consumer string, number int64, most time.Duration) error
	// LiftFences ends the fences of all generations of a consumer.
	LiftFences(ctx context.Context, consumer string) error
	// SwitchGeneration makes a generation that is being built the active one, and the
	// active one old, at once. Both must be fenced, and stay so until it has committed.
	// semel.ErrState: they are not; nothing was done. a is recorded.
	SwitchGeneration(ctx context.Context, consumer string, from, to int64, a Act) error
	// EndGeneration makes one dropped that is being built or old. semel.ErrState: it is
	// another; nothing was done. a is recorded.
	EndGeneration(ctx context.Context, consumer string, number int64, a Act) error
	// ForgetGeneration removes up to so many records of a dropped generation, and returns
	// how many it removed; fewer than most: none are left. semel.ErrState: it is not
	// dropped.
	ForgetGeneration(ctx context.Context, consumer string, number int64, most int) (removed int, err error)
}

// generationMark stands between a consumer's name and its generation.
const generationMark = "@"

// GenerationName is the name under which everything is kept of a generation: the consumer's
// for 0, which consumers without generations have, and "billing@2" for generation 2.
func GenerationName(consumer string, number int64) string {
	if number == 0 {
		return consumer
	}
	return fmt.Sprintf("%s%s%d", consumer, generationMark, number)
}

// GenerationOf takes a GenerationName apart.
func GenerationOf(name string) (consumer string, number int64) {
	at := strings.LastIndex(name, generationMark)
	if at < 1 {
		return name, 0
	}
	n, err := strconv.ParseInt(name[at+1:], 10, 64)
	if err != nil || n < 1 || GenerationName(name[:at], n) != name {
		return name, 0
	}
	return name[:at], n
}
