package strictjson

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// The webhook is invented, in the style of webhooks of code hosting services. The webhook has 11 KB, with objects of up
// to 80 members in random order, and most values are URLs.
//
//go:embed testdata/webhook.json
var webhook []byte

// sample is a text with pointers to three values in the text.
type sample struct {
	name     string
	text     []byte
	pointers []string
}

// bodies returns the measured texts: a small event, a payment, a webhook.
func bodies() []sample {
	small := []byte(`{"id":"018f4e7a-0000-7000-8000-000000000001","order":4711,"customer":{"id":42,"name":"Zoë"},"amount":1250.75,"currency":"EUR","created":"2024-05-06T07:08:09Z","paid":true,"note":"thank you"}`)
	return []sample{
		{"200B", small, []string{"/customer/id", "/amount", "/note"}},
		{"1KiB", body(), []string{"/customer/name", "/lines/7/sku", "/created"}},
		{"webhook", webhook, []string{"/issue/number", "/repository/full_name", "/sender/login"}},
	}
}

// measure measures the time of the function do. In addition to the mean time, measure reports the time of the fastest
// of many short runs, which depends less on other work of the machine.
func measure(b *testing.B, length int, do func()) {
	const stretch = 8
	best, n := time.Hour, 0
	b.SetBytes(int64(length))
	b.ReportAllocs()
	begin := time.Now()
	for b.Loop() {
		do()
		if n++; n%stretch == 0 {
			now := time.Now()
			best, begin = min(best, now.Sub(begin)), now
		}
	}
	b.ReportMetric(float64(best.Nanoseconds())/stretch, "best-ns")
	b.ReportMetric(float64(stretch*length)*1000/float64(best.Nanoseconds()), "best-MB/s")
}

func Benchmark(b *testing.B) {
	for _, c := range bodies() {
		var p Parser
		h := sha256.New()
		sum := make([]byte, 0, sha256.Size)
		run := func(name string, do func()) {
			b.Run(fmt.Sprintf("%s/%s", c.name, name), func(b *testing.B) { measure(b, len(c.text), do) })
		}
		parse := func() *Document {
			d, err := p.Parse(c.text)
			if err != nil {
				b.Fatal(err)
			}
			return d
		}
		run("parse", func() { parse() })
		run("parse_and_hash", func() {
			h.Reset()
			parse().Root().WriteCanonical(h)
			sum = h.Sum(sum[:0])
		})
		var pointers []Pointer
		for _, s := range c.pointers {
			pointer, err := ParsePointer(s)
			if err != nil {
				b.Fatal(err)
			}
			pointers = append(pointers, pointer)
		}
		found, scratch := make([]Found, len(pointers)), make([]byte, 0, 256)
		run("find_3", func() { Find(c.text, pointers, found, scratch) })
		run("parse_and_look_up_3", func() {
			d := parse()
			for _, pointer := range pointers {
				if _, ok := d.Lookup(pointer); !ok {
					b.Fatal(pointer)
				}
			}
		})
		run("sha256", func() {
			h.Reset()
			h.Write(c.text)
			sum = h.Sum(sum[:0])
		})
		run("json.Valid", func() { json.Valid(c.text) })
		run("json.Unmarshal", func() {
			var v any
			if err := json.Unmarshal(c.text, &v); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// body returns about 1 KiB of JSON, as a payment could have.
func body() []byte {
	var b bytes.Buffer
	b.WriteString(`{"id":"018f4e7a-0000-7000-8000-000000000001","amount":1250.75,"currency":"EUR","customer":{"id":42,"name":"Zoë","vip":false},"lines":[`)
	for i := range 12 {
		fmt.Fprintf(&b, `{"sku":"SKU-%05d","quantity":%d,"price":%d.5,"note":null},`, i, i+1, i*10)
	}
	b.WriteString(`{}],"created":"2024-05-06T07:08:09Z","tags":["a","b","c"],"text":"a plain sentence that says what it is for, of some length"}`)
	return b.Bytes()
}
