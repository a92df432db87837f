//go:build unix

package file

import (
	"bufio"
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/semel-go/semel/itest/proof"
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

// sentIDs returns the ids of all webhooks in the file.
func (in Input) sentIDs() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range in.IDs {
			if !yield(webhooks.ID(i)) {
				return
			}
		}
	}
}

// WriteFile writes the deliveries as envelope lines to a file and returns the size of the file in bytes.
func (in Input) WriteFile(path string) (size int64, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriterSize(f, 1<<20)
	for _, id := range proof.Shuffled(in.Deliveries, in.IDs, in.Seed) {
		h := in.Webhook(id)
		n, _ := fmt.Fprintf(out, `{"key":%q,"headers":{"X-GitHub-Delivery":%q,"X-GitHub-Event":%q},"body":%s}`+"\n", h.Repository, webhooks.ID(id), h.Event, h.Body)
		size += int64(n)
	}
	return size, out.Flush()
}
