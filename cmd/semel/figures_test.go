package main

import (
	"bufio"
	"database/sql"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var figuresFile = flag.String("figures", "", "BenchmarkFiguresOfARun writes what it saw into this file")

const figuresPolicy = `version: 1
listen: 127.0.0.1:%s
stores: {shop: {sqlite: {path: shop.db}, migrate: true, setup: setup.sql}}
sources: {payments: {file: {path: in.jsonl, format: json, follow: true}}}
consumers:
  billing:
    from: payments
    store: shop
    identity: {id: "body:/id", source: "const:shop"}
    retry: {max_attempts: 1}
    handler: {sql: {params: {id: "body:/id", amount: "body:/amount"}, statements: ["insert into booked values (:id, :amount)"]}}
`

// recordedMetrics lists the metrics that the benchmark records each second.
var recordedMetrics = []string{`semel_effects_total{consumer="billing"}`, `semel_duplicates_total{consumer="billing"}`,
	`semel_store_rows{consumer="billing",state="PARKED",store="shop"}`, `semel_unsettled_oldest_seconds{consumer="billing"}`, `semel_store_sample_stale{store="shop"}`}

// BenchmarkFiguresOfARun measures nothing. The benchmark records metrics of a consumer for the picture in
// docs/reference/metrics.md. The recorded run takes 75 seconds, and 100 payments per second arrive. From
// second 15 to 30, each payment arrives twice. From second 30 to 45, some payments cannot be booked. From
// second 50 to 60, another session holds the write lock of the database.
//
//	go test ./cmd/semel -run '^$' -bench FiguresOfARun -benchtime 1x -figures FILE
func BenchmarkFiguresOfARun(b *testing.B) {
	if *figuresFile == "" {
		b.Fatal("name the file with -figures")
	}
	b.Chdir(b.TempDir())
	port := freePort(b)
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	write("semel.yaml", fmt.Sprintf(figuresPolicy, port))
	write("setup.sql", "create table booked (id text primary key, amount integer not null check (amount > 0)) strict;")
	write("in.jsonl", "")
	run := exec.Command("semel", "run", "--log-level", "error")
	if err := run.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = run.Process.Kill(); _ = run.Wait() }()
	var table strings.Builder
	table.WriteString("second,effects,duplicates,parked,oldest,stale\n")
	var release func()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := range 750 {
		<-tick.C
		feed(b, n)
		switch n {
		case 500:
			release = occupy(b)
		case 600:
			release()
		}
		if n%10 == 9 {
			fmt.Fprintf(&table, "%d,%s\n", n/10+1, strings.Join(readMetrics(port), ","))
		}
	}
	write(*figuresFile, table.String())
}

// feed appends to the source file the payments that arrive in a tenth of a second.
func feed(b *testing.B, n int) {
	f, err := os.OpenFile("in.jsonl", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for i := range 10 {
		amount, second := 1, n/10
		if second >= 30 && second < 45 && i == 0 && n%5 == 0 {
			amount = -1
		}
		line := fmt.Sprintf(`{"id":"%d-%d","amount":%d}`+"\n", n, i, amount)
		if second >= 15 && second < 30 {
			line += line
		}
		if _, err := f.WriteString(line); err != nil {
			b.Fatal(err)
		}
	}
}

// occupy takes the write lock of the database. The caller must call the returned function release.
func occupy(b *testing.B) (release func()) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(".", "shop.db")+"?_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		b.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		b.Fatal(err)
	}
	return func() { _ = tx.Rollback(); _ = db.Close() }
}

// readMetrics returns the values of the recorded metrics. The value of a missing metric is 0.
func readMetrics(port string) []string {
	values := make([]string, len(recordedMetrics))
	for i := range values {
		values[i] = "0"
	}
	r, err := http.Get("http://127.0.0.1:" + port + "/metrics")
	if err != nil {
		return values
	}
	defer r.Body.Close()
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		for i, name := range recordedMetrics {
			if value, is := strings.CutPrefix(lines.Text(), name+" "); is {
				values[i] = value
			}
		}
	}
	return values
}
