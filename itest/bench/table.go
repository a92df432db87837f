package bench

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Report is the result of a whole measurement.
type Report struct {
	Head    Head          `json:"head"`
	Rounds  int           `json:"rounds"`
	Target  time.Duration `json:"target_ns"`
	Elapsed time.Duration `json:"elapsed_ns"`
	Rows    []Row         `json:"rows"`
}

// Write writes the report as Markdown.
func (r Report) Write(w io.Writer) error {
	var b strings.Builder
	r.head(&b)
	for _, f := range Forms() {
		r.form(&b, f)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteKafka writes a report of MeasureKafka as Markdown.
func (r Report) WriteKafka(w io.Writer) error {
	var b strings.Builder
	r.machine(&b)
	fmt.Fprintf(&b, "* %d rounds; %v in all.\n\n", r.Rounds, r.Elapsed.Round(time.Second))
	b.WriteString("| bodies | ids | Semel's workers | Semel /s | loop without deduplication /s | Semel : loop | loop : itself | MB/s: Semel, loop | client µs a message: Semel, loop |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| %v | %s | %d | %s | %s | %s | %s | %.1f, %.1f | %.1f, %.1f |\n", row.Body, row.IDs, row.Workers, row.Rate(Semel).Text("%.0f"), row.Rate(Hand).Text("%.0f"),
			row.Ratio(Semel, Hand).Text("%.2f"), row.Ratio(Again, Hand).Text("%.2f"), row.throughput(Semel), row.throughput(Hand), row.Busy(Semel).Median, row.Busy(Hand).Median)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Report) head(b *strings.Builder) {
	r.machine(b)
	fmt.Fprintf(b, "* %d rounds, each contestant busy for about %v a round, 3 s where workers contend; %v in all.\n\n", r.Rounds, r.Target, r.Elapsed.Round(time.Second))
}

func (r Report) machine(b *strings.Builder) {
	h := r.Head
	fmt.Fprintf(b, "Measured %s at commit %s: PostgreSQL %s, %s, %d cores, client and server on one machine over loopback.\n\n", h.At.Format("2006-01-02 15:04 MST"), h.Commit, h.Server, h.Go, h.Cores)
	fmt.Fprintf(b, "* Round trip (`select 1`): %s ms. Flush (a commit of one row): %s ms.\n", h.RoundTrip.Text("%.2f"), h.Flush.Text("%.2f"))
	fmt.Fprintf(b, "* Load average before %s, after %s; a load above 1 before the start says that something else used the machine.\n", h.LoadBefore, h.LoadAfter)
	fmt.Fprintf(b, "* Settings: %s.\n", h.Settings)
}

// throughput returns how many megabytes of bodies an implementation processes per second.
func (r Row) throughput(who Contestant) float64 {
	return r.Rate(who).Median * float64(r.Body.Mean()) / 1e6
}

const columnsHead = `| bodies | effect | workers | duplicates | ids | latency | Semel /s | Semel by key /s | by hand /s | loop /s | Semel : by hand | by hand : itself | Semel : loop | by key : loop | by key : Semel | client µs a message: Semel, by hand |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
`

func (r Report) form(b *strings.Builder, f Form) {
	contended := false
	for i, row := range r.rowsOf(f) {
		if i == 0 {
			fmt.Fprintf(b, "### %s\n\n%s", f, columnsHead)
		}
		contended = contended || row.Contended()
		row.write(b)
	}
	b.WriteString("\n")
	if contended {
		r.writeContention(b, f)
	}
}

func (r Report) rowsOf(f Form) (rows []Row) {
	for _, row := range r.Rows {
		if row.Form == f {
			rows = append(rows, row)
		}
	}
	return rows
}

func (r Row) write(b *strings.Builder) {
	fmt.Fprintf(b, "| %v | %s | %d | %d %% | %s | %v | %s | %s | %s | %s | %s | %s | %s | %s | %s | %.1f, %.1f |\n", r.Body, r.Effect, r.Workers, r.Duplicates, r.IDs, r.Latency,
		r.Rate(Semel).Text("%.0f"), r.Rate(Keys).Text("%.0f"), r.Rate(Hand).Text("%.0f"), r.Rate(Textbook).Text("%.0f"),
		r.Ratio(Semel, Hand).Text("%.2f"), r.Ratio(Again, Hand).Text("%.2f"), r.Ratio(Semel, Textbook).Text("%.1f"), r.Ratio(Keys, Textbook).Text("%.1f"), r.Ratio(Keys, Semel).Text("%.2f"), r.Busy(Semel).Median, r.Busy(Hand).Median)
}

// writeContention writes a table of lock conflicts in the contended rows, summed over all rounds.
func (r Report) writeContention(b *strings.Builder, f Form) {
	fmt.Fprintf(b, "Contention, over all rounds:\n\n| effect | workers | Semel: batches run again | Semel: time serialised | by key: batches run again | by hand: deadlocks | messages a round, Semel and by hand |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, row := range r.rowsOf(f) {
		if row.Contended() {
			met, serial := row.Met(Semel)
			hand, _ := row.Met(Hand)
			keys, _ := row.Met(Keys)
			fmt.Fprintf(b, "| %s | %d | %d | %.0f %% | %d | %d | %d, %d |\n", row.Effect, row.Workers, met, 100*serial, keys, hand, row.Runs[Semel][0].Messages, row.Runs[Hand][0].Messages)
		}
	}
	b.WriteString("\n")
}
