//go:build unix

package file

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"

	"github.com/semel-go/semel/itest/worlds/webhooks"
)

// Input describes the file of webhooks. The file has Deliveries lines with IDs different ids, in an order
// that Seed determines.
type Input struct {
	Webhooks        []webhooks.Webhook
	Deliveries, IDs int
	Seed            uint64
}

// Webhook returns the webhook with id i.
func (in Input) Webhook(i int) webhooks.Webhook { return in.Webhooks[i%len(in.Webhooks)] }

// sent returns the ids of all webhooks in the file.
func (in Input) sent() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range in.IDs {
			if !yield(webhooks.ID(i)) {
				return
			}
		}
	}
}

// WriteFile writes the deliveries as envelope lines to a file and returns the size of the file in bytes.
func (in Input) WriteFile(path string) (int64, error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	for _, id := range in.order() {
		if err := writeLine(out, webhooks.ID(id), in.Webhook(id)); err != nil {
			return 0, err
		}
	}
	if err := out.Flush(); err != nil {
		return 0, err
	}
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	return end, f.Close()
}

// order returns the id of each delivery in the file. Each id occurs at least once. The remaining deliveries
// repeat random ids.
func (in Input) order() []int {
	r := rand.New(rand.NewPCG(in.Seed, 1))
	ids := make([]int, in.Deliveries)
	for i := range ids {
		ids[i] = i
		if i >= in.IDs {
			ids[i] = r.IntN(in.IDs)
		}
	}
	r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids
}

func writeLine(out *bufio.Writer, delivery string, h webhooks.Webhook) error {
	fmt.Fprintf(out, `{"key":%q,"headers":{"X-GitHub-Delivery":%q,"X-GitHub-Event":%q},"body":`, h.Repository, delivery, h.Event)
	out.Write(h.Body)
	_, err := out.WriteString("}\n")
	return err
}
