//go:build unix

package prooffile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
)

// Webhook is one payload as its sender makes it, without a delivery id.
type Webhook struct {
	Event string
	// Repository is empty where the payload names none.
	Repository string
	// Body is compact JSON on one line.
	Body []byte
}

// What api.github.com/index.json of @octokit/webhooks-examples 7.6.1 holds.
const (
	RealWebhooks          = 329
	RealWithoutRepository = 49
)

// LoadWebhooks reads the payloads from index.json and checks how many there are.
func LoadWebhooks(path string) ([]Webhook, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var events []struct {
		Name     string
		Examples []json.RawMessage
	}
	if err := json.Unmarshal(text, &events); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var hooks []Webhook
	for _, e := range events {
		for _, body := range e.Examples {
			hook, err := newWebhook(e.Name, body)
			if err != nil {
				return nil, fmt.Errorf("%s: an example of %s: %w", path, e.Name, err)
			}
			hooks = append(hooks, hook)
		}
	}
	return hooks, checkCounts(path, hooks)
}

func newWebhook(event string, body []byte) (Webhook, error) {
	var named struct {
		Repository struct {
			FullName string `json:"full_name"`
		}
	}
	if err := json.Unmarshal(body, &named); err != nil {
		return Webhook{}, err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, body); err != nil {
		return Webhook{}, err
	}
	return Webhook{Event: event, Repository: named.Repository.FullName, Body: line.Bytes()}, nil
}

func checkCounts(path string, hooks []Webhook) error {
	without := 0
	for _, h := range hooks {
		if h.Repository == "" {
			without++
		}
	}
	if len(hooks) != RealWebhooks || without != RealWithoutRepository {
		return fmt.Errorf("%s holds %d payloads, %d without repository; expected %d and %d",
			path, len(hooks), without, RealWebhooks, RealWithoutRepository)
	}
	return nil
}

// Input says what the file holds: Deliveries of IDs webhooks, in the order
// that Seed gives.
type Input struct {
	Webhooks        []Webhook
	Deliveries, IDs int
	Seed            uint64
}

// DeliveryID is the id that the sender gave webhook i.
func DeliveryID(i int) string {
	r := rand.New(rand.NewPCG(uint64(i), 0x5e7e1))
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], r.Uint64())
	binary.BigEndian.PutUint64(b[8:], r.Uint64())
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Webhook is what is delivered under id i.
func (in Input) Webhook(i int) Webhook { return in.Webhooks[i%len(in.Webhooks)] }

// WriteFile writes the deliveries as envelope lines and returns their bytes.
func (in Input) WriteFile(path string) (int64, error) { return in.write(path, os.O_TRUNC, in.order()) }

// write writes deliveries of these ids and returns where the file ends.
func (in Input) write(path string, how int, ids []int) (int64, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|how, 0o644)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	for _, id := range ids {
		if err := writeLine(out, DeliveryID(id), in.Webhook(id)); err != nil {
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

// parts are the deliveries in an order of the reader's own, in two parts: the
// first holds the first delivery of most ids, the second all the rest.
func (in Input) parts(reader int) (first, second []int) {
	all := in.order()
	r := rand.New(rand.NewPCG(in.Seed, uint64(100+reader)))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	seen := make([]bool, in.IDs)
	for _, id := range all {
		if id < in.IDs*55/100 && !seen[id] {
			first = append(first, id)
		} else {
			second = append(second, id)
		}
		seen[id] = true
	}
	return first, second
}

// order lists the delivered ids: each at least once, the rest repeated.
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

func writeLine(out *bufio.Writer, delivery string, h Webhook) error {
	fmt.Fprintf(out, `{"key":%q,"headers":{"X-GitHub-Delivery":%q,"X-GitHub-Event":%q},"body":`, h.Repository, delivery, h.Event)
	out.Write(h.Body)
	_, err := out.WriteString("}\n")
	return err
}
