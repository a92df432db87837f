package admin

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/store"
)

// StoredGeneration is a generation of a consumer.
type StoredGeneration struct {
	Number int64
	State  generations.State
	// Since is the time of its last change of state and Opened that of its creation, by the store's clock.
	Since, Opened time.Time
	// By and Why say who opened it and why; empty for the first generation.
	By, Why string
	// Fenced is the remaining time of its fence, during which no batch may use it, while a switch is in
	// progress.
	Fenced time.Duration
}

// LongestFence is the maximum duration of a fence.
const LongestFence = 10 * time.Minute

// Generations is implemented by a store that keeps the generations of consumers. A batch with
// TxOptions.Working begins and commits only while its generation has the required state and is not fenced.
// Otherwise Begin returns generations.ErrNotUsable, which is of ClassDown, and no transaction is open.
//
// The records of a generation are stored under its own consumer name, see GenerationName.
type Generations interface {
	// Generations returns the generations of a consumer by number. If a fence ends later than
	// LongestFence from now, because the store's clock was ahead when it was set, Generations
	// shortens it to LongestFence.
	Generations(ctx context.Context, consumer string) ([]StoredGeneration, error)
	// BeginGenerations makes generation 0 the active one of a consumer that has none.
	BeginGenerations(ctx context.Context, consumer string) error
	// OpenGeneration creates the next generation in GenerationBuilding and returns its number.
	// OpenGeneration records a. semel.ErrState: another generation is being built, or the
	// consumer has no generations; nothing is changed.
	OpenGeneration(ctx context.Context, consumer string, a store.Act) (number int64, err error)
	// FenceGeneration fences a building or active generation for this duration, at most LongestFence,
	// by the store's clock, and returns after all batches that began before have ended. No batch may
	// use a fenced generation. After an error the fence may exist; LiftFences removes it.
	// semel.ErrState: the generation has another state or is fenced already; nothing is changed.
	FenceGeneration(ctx context.Context, consumer string, number int64, most time.Duration) error
	// LiftFences removes the fences of all generations of a consumer.
	LiftFences(ctx context.Context, consumer string) error
	// SwitchGeneration makes the building generation active and the active generation old, in one
	// transaction. Both must be fenced until the commit. SwitchGeneration records a.
	// semel.ErrState: they are not fenced; nothing is changed.
	SwitchGeneration(ctx context.Context, consumer string, from, to int64, a store.Act) error
	// EndGeneration sets a building or old generation to GenerationDropped and records a.
	// semel.ErrState: it has another state; nothing is changed.
	EndGeneration(ctx context.Context, consumer string, number int64, a store.Act) error
	// ForgetGeneration removes up to most records of a dropped generation and returns their number. If
	// it is less than most, none are left. semel.ErrState: the generation is not dropped.
	ForgetGeneration(ctx context.Context, consumer string, number int64, most int) (removed int, err error)
}

// generationMark separates a consumer's name from the number of its generation.
const generationMark = "@"

// GenerationName returns the consumer name under which the records of a generation are stored: "billing" for
// generation 0, which consumers without generations use, and "billing@2" for generation 2.
func GenerationName(consumer string, number int64) string {
	if number == 0 {
		return consumer
	}
	return fmt.Sprintf("%s%s%d", consumer, generationMark, number)
}

// GenerationOf returns the parts of a GenerationName.
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
