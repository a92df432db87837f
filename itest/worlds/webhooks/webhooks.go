// Package webhooks provides real webhook payloads for fault tests, and generated payloads for tests.
package webhooks

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
)

// Webhook is one payload with the name of its event, without a delivery id.
type Webhook struct {
	Event string
	// Repository is the name of the payload's repository, or "" if the payload has no repository.
	Repository string
	// Body is compact JSON on one line.
	Body []byte
}

// Number and names of the payloads in api.github.com/index.json of @octokit/webhooks-examples 7.6.1.
const (
	Real              = 329
	WithoutRepository = 49
)

// Load reads the payloads from index.json and checks their number.
func Load(path string) ([]Webhook, error) {
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
	if len(hooks) != Real || without != WithoutRepository {
		return fmt.Errorf("%s holds %d payloads, %d without repository; expected %d and %d",
			path, len(hooks), without, Real, WithoutRepository)
	}
	return nil
}

// ID returns the id of webhook i.
func ID(i int) string {
	r := rand.New(rand.NewPCG(uint64(i), 0x5e7e1))
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], r.Uint64())
	binary.BigEndian.PutUint64(b[8:], r.Uint64())
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// MadeUp returns generated payloads, so that tests need no download. The parameter size is the approximate number of
// bytes of each payload. Some payloads have no repository.
func MadeUp(count, size int) []Webhook {
	var all []Webhook
	for i := range count {
		text := strings.Repeat(fmt.Sprintf("%d text ", i), size/7+1)[:size]
		hook := Webhook{Event: fmt.Sprintf("event-%d", i%7), Body: fmt.Appendf(nil, `{"action":"created","text":%q}`, text)}
		if i%5 != 0 {
			hook.Repository = fmt.Sprintf("shop/repository-%d", i%3)
			hook.Body = fmt.Appendf(nil, `{"repository":{"full_name":%q},"number":%d,"text":%q}`, hook.Repository, i, text)
		}
		all = append(all, hook)
	}
	return all
}
