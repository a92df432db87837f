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
	// Since is the time of the last change of state. Opened is the time of creation. Since and Opened are by the
	// store's clock.
	Since, Opened time.Time
	// By is the person who opened the generation, and Why is the reason. By and Why are empty for the first generation.
	By, Why string
	// Fenced is the remaining time of the generation's fence, which exists during a switch. No batch may use
	// a fenced generation.
	Fenced time.Duration
}

// LongestFence is the maximum duration of a fence: the time in which no process applies messages of a consumer, because
// a rebuild switches generations.
const LongestFence = 10 * time.Minute

// Generations is implemented by a store that keeps the generations of consumers. A batch with TxOptions.Working begins
// and commits only while its generation has the required state and is not fenced. If the generation may not be used,
// Begin returns generations.ErrNotUsable, which has ClassDown, and no transaction is open.
//
// The records of a generation are stored under the consumer name that GenerationName returns.
type Generations interface {
	// Generations returns the generations of a consumer in the order of their numbers. If the store's clock was ahead
	// when a fence was set, the fence may end later than LongestFence from now. Generations shortens a fence that would
	// last too long to LongestFence.
	Generations(ctx context.Context, consumer string) ([]StoredGeneration, error)
	// BeginGenerations creates generation 0 as the active generation of a consumer that has no generations.
	BeginGenerations(ctx context.Context, consumer string) error
	// OpenGeneration creates the next generation in GenerationBuilding and returns its number. OpenGeneration also
	// writes the audit record a. semel.ErrState means that another generation is being built, or that the consumer has
	// no generations; nothing is changed.
	OpenGeneration(ctx context.Context, consumer string, a store.Act) (number int64, err error)
	// FenceGeneration fences a building or active generation for the duration most, at most LongestFence, by the
	// store's clock: no batch may use a fenced generation. FenceGeneration returns after all batches that began before
	// the fence have ended. After an error the fence may exist; LiftFences removes the fence. semel.ErrState means that
	// the generation has another state or is fenced already; nothing is changed.
	FenceGeneration(ctx context.Context, consumer string, number int64, most time.Duration) error
	// LiftFences removes the fences of all generations of a consumer.
	LiftFences(ctx context.Context, consumer string) error
	// SwitchGeneration makes the building generation active and the active generation old, in one transaction. The
	// generations from and to must be fenced until the commit. SwitchGeneration also writes the audit record a.
	// semel.ErrState means that a generation is not fenced; nothing is changed.
	SwitchGeneration(ctx context.Context, consumer string, from, to int64, a store.Act) error
	// EndGeneration sets a building or old generation to GenerationDropped and writes the audit record a.
	// semel.ErrState means that the generation has another state; nothing is changed.
	EndGeneration(ctx context.Context, consumer string, number int64, a store.Act) error
	// ForgetGeneration removes up to most records of a dropped generation and returns the number of removed records. If
	// ForgetGeneration removed fewer records than most, no records are left. semel.ErrState means that the generation
	// is not dropped.
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

// GenerationOf returns the consumer and the number that GenerationName has combined.
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
