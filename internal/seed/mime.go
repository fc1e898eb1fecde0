package seed

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"regexp"
	"strings"
)

// Limits of what is looked at in a message: what lies beyond is not checked.
const (
	maxParts = 200
	maxDepth = 5
)

// headerLine is what the parser that cloud-init uses takes for a line of a
// message's header; anything else at the beginning makes all of it the body.
var headerLine = regexp.MustCompile(`^(From |[!-9;-~]+:)`)

// isMessage tells whether cloud-init would read the text as a MIME message.
func isMessage(text string) bool {
	return strings.Contains(strings.ToLower(text[:min(len(text), 4096)]), "mime-version:") && headerLine.MatchString(text)
}

// partTypes are the types of parts that cloud-init acts on.
var partTypes = map[string]format{
	"text/cloud-config":               cloudConfig,
	"text/cloud-config-archive":       cloudConfigArchive,
	"text/cloud-config-jsonp":         jsonPatch,
	"text/jinja2":                     jinja,
	"text/upstart-job":                upstart,
	"text/cloud-boothook":             script,
	"text/part-handler":               script,
	"text/x-include-url":              script,
	"text/x-include-once-url":         script,
	"text/x-shellscript":              script,
	"text/x-shellscript-per-boot":     script,
	"text/x-shellscript-per-instance": script,
	"text/x-shellscript-per-once":     script,
}

// message walks the parts of a MIME message.
type message struct {
	parts    int
	handlers bool // a part handler came by: it may act on any type
	found    []Finding
}

func checkMessage(text string) []Finding {
	// A leading "From " line, as in a mailbox, is no header field.
	body := text
	if strings.HasPrefix(body, "From ") {
		_, body, _ = strings.Cut(body, "\n")
	}
	parsed, err := mail.ReadMessage(strings.NewReader(body))
	if err != nil {
		return []Finding{{Warning: true, Problem: "its MIME header is too unusual to be checked here", Advice: "See in the guest, with cloud-init's log, whether cloud-init reads it"}}
	}
	var m message
	m.walk(parsed.Header.Get("Content-Type"), parsed.Header.Get("Content-Transfer-Encoding"), "", parsed.Body, 0)
	return m.found
}

// walk looks at one part, or at the parts in it.
func (m *message) walk(contentType, encoding, filename string, body io.Reader, depth int) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind = strings.ToLower(strings.TrimSpace(strings.Split(contentType, ";")[0]))
	}
	if !strings.HasPrefix(kind, "multipart/") {
		m.leaf(kind, encoding, filename, body)
		return
	}
	if depth >= maxDepth || params["boundary"] == "" {
		m.found = append(m.found, Finding{Problem: "it is a multi-part message without a boundary, or with too many levels", Advice: "Name the boundary in Content-Type, as the data source cloudinit_config does"})
		return
	}
	reader := multipart.NewReader(body, params["boundary"])
	for before := m.parts; ; {
		part, err := reader.NextRawPart()
		// A message that is cut off ends where the text ends, for cloud-init, too.
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			if m.parts == before {
				m.found = append(m.found, Finding{Problem: "it is a multi-part message without any part, so cloud-init ignores it", Advice: "See that the boundary in Content-Type is the one between the parts, on lines of its own that begin with --"})
			}
			return
		}
		if err != nil {
			m.found = append(m.found, Finding{Warning: true, Problem: fmt.Sprintf("what follows part %d is too unusual to be checked here", m.parts), Advice: "See in the guest, with cloud-init's log, whether cloud-init reads it"})
			return
		}
		if m.parts++; m.parts > maxParts {
			return
		}
		m.walk(part.Header.Get("Content-Type"), part.Header.Get("Content-Transfer-Encoding"), part.FileName(), part, depth+1)
	}
}

// leaf checks one part that is no container.
func (m *message) leaf(kind, encoding, filename string, body io.Reader) {
	name := fmt.Sprintf("part %d", max(m.parts, 1))
	if filename != "" {
		name += " (" + filename + ")"
	}
	add := func(found ...Finding) {
		for _, f := range found {
			f.Part = name
			m.found = append(m.found, f)
		}
	}
	text, err := decode(kind, encoding, body)
	if err != nil {
		add(Finding{Problem: "it cannot be decoded as its header says", Advice: "Correct Content-Type and Content-Transfer-Encoding, or the part"})
		return
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	f, known := partTypes[kind]
	if selfDescribing(kind) || isGzip(kind) {
		if own := formatOf(text); own != unknownFormat {
			f, known = own, true
		}
	}
	m.handlers = m.handlers || kind == "text/part-handler" || strings.HasPrefix(strings.ToLower(strings.TrimSpace(text)), "#part-handler")
	switch {
	case known:
		add(checkFormat(f, text)...)
	case m.handlers:
	case selfDescribing(kind) || isGzip(kind):
		add(Finding{Problem: "its type says nothing, and it begins with no header that cloud-init knows, so cloud-init ignores it", Advice: "Set its Content-Type, for example to text/cloud-config, or begin it with a header"})
	default:
		add(Finding{Warning: true, Problem: "its type " + shorten(kind) + " is not one of cloud-init's own", Advice: "cloud-init ignores it unless the guest's image brings a handler for it"})
	}
}

func isGzip(kind string) bool {
	switch kind {
	case "application/gzip", "application/gzip-compressed", "application/gzipped", "application/x-compress", "application/x-compressed",
		"application/x-gunzip", "application/x-gzip", "application/x-gzip-compressed":
		return true
	}
	return false
}

// decode undoes the transfer encoding and gzip, with a limit on what that may
// grow to.
func decode(kind, encoding string, body io.Reader) (string, error) {
	raw, err := io.ReadAll(io.LimitReader(body, 2*MaxContent))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) { // cut off
		return "", err
	}
	body = bytes.NewReader(raw)
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, &lenient{body})
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	}
	b, err := io.ReadAll(io.LimitReader(body, MaxContent))
	if err != nil || !isGzip(kind) {
		return string(b), err
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return "", err
	}
	b, err = io.ReadAll(io.LimitReader(z, MaxContent))
	return string(b), err
}

// lenient drops what may stand between the characters of base64.
type lenient struct{ r io.Reader }

func (l *lenient) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	kept := 0
	for _, c := range p[:n] {
		if c > ' ' {
			p[kept] = c
			kept++
		}
	}
	return kept, err
}
