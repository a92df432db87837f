package metrics

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	recordedFigures = "testdata/figures.csv"
	figuresPicture  = "../../../../docs/pictures/figures.svg"
)

// The sizes in the picture, in pixels.
const (
	leftEdge, rightEdge = 60, 20
	aSecond             = 11
	panelTall           = 120
	panelApart          = 46
	topEdge             = 40
)

// curve is a line of a chart.
type curve struct {
	name, colour string
	values       []float64
}

// chart is a part of the picture. A value that is greater than the field most is drawn at the upper edge,
// together with the value as text.
type chart struct {
	title  string
	most   float64
	curves []curve
}

// faultPeriod is a fault that the recorded run contains, with its first and last second.
type faultPeriod struct {
	from, to int
	says     string
}

var faultPeriods = []faultPeriod{{15, 30, "each message comes twice"}, {30, 45, "some cannot be applied"}, {50, 60, "somebody keeps the database"}}

// columns returns the columns of a recording, by name.
func columns(text string) (map[string][]float64, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) < 2 {
		return nil, fmt.Errorf("%d rows: %w", len(rows), err)
	}
	all := map[string][]float64{}
	for _, row := range rows[1:] {
		for i, name := range rows[0] {
			v, err := strconv.ParseFloat(row[i], 64)
			if err != nil {
				return nil, err
			}
			all[name] = append(all[name], v)
		}
	}
	return all, nil
}

// rates returns the increase of a counter in each second.
func rates(counter []float64) (all []float64) {
	before := 0.0
	for _, v := range counter {
		all, before = append(all, v-before), v
	}
	return all
}

// drawRecording returns a picture of a recording, as SVG.
func drawRecording(text string) (string, error) {
	of, err := columns(text)
	if err != nil {
		return "", err
	}
	charts := []chart{
		{"a second", 250, []curve{{"effects", "#2a7", rates(of["effects"])}, {"duplicates", "#27c", rates(of["duplicates"])}}},
		{"age of the oldest that is in hand, seconds", 12, []curve{{"semel_unsettled_oldest_seconds", "#c70", of["oldest"]}}},
		{"parked rows, as the sampler sees them every 15 s", 40, []curve{{"semel_store_rows, PARKED", "#c33", of["parked"]}}},
	}
	seconds := len(of["second"])
	wide, high := leftEdge+seconds*aSecond+rightEdge, topEdge+len(charts)*(panelTall+panelApart)
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n<title>What a run told of itself in %d seconds</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n", wide, high, seconds)
	for _, h := range faultPeriods {
		fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#f3f0e6\"/>\n<text x=\"%d\" y=\"16\" fill=\"#555\" font-size=\"11\">%s</text>\n",
			leftEdge+h.from*aSecond, topEdge-16, (h.to-h.from)*aSecond-2, high-topEdge-8, leftEdge+h.from*aSecond, h.says)
	}
	for i, c := range charts {
		c.draw(&b, topEdge+i*(panelTall+panelApart), seconds)
	}
	return b.String() + "</svg>\n", nil
}

func (c chart) draw(b *strings.Builder, top, seconds int) {
	bottom := top + panelTall
	for _, part := range []int{0, 1, 2} {
		y := bottom - part*panelTall/2
		fmt.Fprintf(b, "<path d=\"M%d %dH%d\" stroke=\"#ddd\"/>\n<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"#555\">%g</text>\n", leftEdge, y, leftEdge+seconds*aSecond, leftEdge-6, y+4, c.most*float64(part)/2)
	}
	for s := 0; s <= seconds; s += 15 {
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" fill=\"#555\">%d s</text>\n", leftEdge+s*aSecond, bottom+15, s)
	}
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">%s</text>\n", leftEdge, top-5, c.title)
	name := leftEdge + 500
	for _, line := range c.curves {
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n", name, top-5, line.colour, line.name)
		name += 70
		var points []string
		for i, v := range line.values {
			x, y := leftEdge+(i+1)*aSecond, bottom-int(min(v, c.most)*panelTall/c.most)
			if points = append(points, fmt.Sprintf("%d,%d", x, y)); v > c.most {
				fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" fill=\"%s\">%g</text>\n", x+4, y+11, line.colour, v)
			}
		}
		fmt.Fprintf(b, "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"/>\n", strings.Join(points, " "), line.colour)
	}
}

func TestThePictureShowsARecordedRun(t *testing.T) {
	text, err := os.ReadFile(recordedFigures)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := drawRecording(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(figuresPicture, []byte(picture), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("K4_it_is_not_stale", func(t *testing.T) {
		if got, err := os.ReadFile(figuresPicture); err != nil || string(got) != picture {
			t.Errorf("docs/pictures/figures.svg does not match %s (%v): go test ./cmd/semel/internal/metrics -update", recordedFigures, err)
		}
		if !strings.Contains(introduction, "(../pictures/figures.svg)") {
			t.Error("docs/reference/metrics.md does not show the picture")
		}
	})
	t.Run("K4_the_run_shows_what_was_done_to_it", func(t *testing.T) {
		of, err := columns(string(text))
		if err != nil {
			t.Fatal(err)
		}
		effects, duplicates, last := rates(of["effects"]), rates(of["duplicates"]), len(of["second"])-1
		for name, is := range map[string]bool{
			"duplicates come in their time only":       slices.Max(duplicates[:14]) == 0 && slices.Min(duplicates[17:29]) > 0 && slices.Max(duplicates[32:]) == 0,
			"nothing takes effect while it cannot":     effects[54] == 0 && of["oldest"][58] > 5,
			"what waited takes effect then":            slices.Max(effects) > 500 && of["oldest"][last] < 1,
			"what cannot be applied is set aside":      of["parked"][0] == 0 && of["parked"][last] == 30,
			"each message takes effect once, or never": of["effects"][last]+of["parked"][last] <= float64(last+1)*100,
		} {
			if !is {
				t.Errorf("not true: %s", name)
			}
		}
	})
}
