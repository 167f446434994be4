package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Manifest is one checkpoint: everything of it except the bytes of its blobs.
type Manifest struct {
	Version    int    // of the encoding; 0 is taken for ManifestVersion when it is written
	Job, Shard string // filled in by the Store
	ID         ID
	Epoch      int64 // of the run that saved it
	CreatedAt  time.Time
	Config     map[string]string // for people; without secrets
	States     []NamedState      // in the order of the participants
}

// NamedState is the state of one participant.
type NamedState struct {
	Name  string
	State []byte
	Refs  []string // all blobs that State names
}

// ManifestVersion is the version of the encoding that Encode writes.
const ManifestVersion = 1

// manifestMagic begins every manifest. The header line is
//
//	sluice-checkpoint <version> <bytes of the body> <sha256 of the body, hex>
//
// and the rest of the file is the body: indented JSON, so that a person can read it.
const manifestMagic = "sluice-checkpoint"

type manifestBody struct {
	Job       string            `json:"job"`
	Shard     string            `json:"shard"`
	ID        ID                `json:"checkpoint"`
	Epoch     int64             `json:"epoch"`
	CreatedAt time.Time         `json:"createdAt"`
	Config    map[string]string `json:"config,omitempty"`
	States    []stateBody       `json:"states"`
}

// stateBody holds the state as text if it is text, because people debug with it, and as base64 otherwise.
type stateBody struct {
	Name   string   `json:"name"`
	Text   *string  `json:"text,omitempty"`
	Base64 []byte   `json:"base64,omitempty"`
	Refs   []string `json:"refs,omitempty"`
}

// Encode returns the manifest as it is stored. It fails if the manifest is not complete.
func (m Manifest) Encode() ([]byte, error) {
	if m.Version != 0 && m.Version != ManifestVersion {
		return nil, fmt.Errorf("manifest version %d: %w", m.Version, ErrVersion)
	}
	if err := m.validate(); err != nil {
		return nil, err
	}
	body := manifestBody{
		Job: m.Job, Shard: m.Shard, ID: m.ID, Epoch: m.Epoch, CreatedAt: m.CreatedAt.UTC(), Config: m.Config,
		States: make([]stateBody, len(m.States)),
	}
	for i, s := range m.States {
		body.States[i] = stateBody{Name: s.Name, Refs: s.Refs}
		if utf8.Valid(s.State) {
			text := string(s.State)
			body.States[i].Text = &text
		} else {
			body.States[i].Base64 = s.State
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(body); err != nil {
		return nil, fmt.Errorf("manifest of checkpoint %d: %w", m.ID, err)
	}
	return append([]byte(manifestHeader(ManifestVersion, b.Bytes())), b.Bytes()...), nil
}

func manifestHeader(version int, body []byte) string {
	return fmt.Sprintf("%s %d %d %x\n", manifestMagic, version, len(body), sha256.Sum256(body))
}

// DecodeManifest reads what Encode returned, and nothing else: any changed, missing or additional byte is an error. A manifest
// of a newer release gives an error that matches ErrVersion. The result does not refer to data.
func DecodeManifest(data []byte) (Manifest, error) {
	header, body, found := bytes.Cut(data, []byte("\n"))
	fields := strings.Split(string(header[:min(len(header), 200)]), " ")
	if !found || fields[0] != manifestMagic || len(fields) != 4 {
		return Manifest{}, errors.New("not a checkpoint manifest")
	}
	version, err := strconv.Atoi(fields[1])
	if err != nil {
		return Manifest{}, errors.New("not a checkpoint manifest")
	}
	if version != ManifestVersion {
		return Manifest{}, fmt.Errorf("manifest version %d: %w", version, ErrVersion)
	}
	// Compared as text, so that there is one spelling only.
	if want := manifestHeader(version, body); want != string(header)+"\n" {
		if length := strconv.Itoa(len(body)); fields[2] != length {
			return Manifest{}, fmt.Errorf("manifest has %s bytes where its header says %q", length, fields[2])
		}
		return Manifest{}, errors.New("manifest does not match its checksum")
	}
	return decodeBody(body)
}

func decodeBody(data []byte) (Manifest, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var body manifestBody
	if err := d.Decode(&body); err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Manifest{}, errors.New("manifest: more than one JSON value")
	}
	m := Manifest{
		Version: ManifestVersion, Job: body.Job, Shard: body.Shard, ID: body.ID, Epoch: body.Epoch,
		CreatedAt: body.CreatedAt.UTC(), Config: body.Config,
	}
	for _, s := range body.States {
		state := NamedState{Name: s.Name, State: s.Base64, Refs: s.Refs}
		if (s.Text == nil) == (s.Base64 == nil) {
			return Manifest{}, fmt.Errorf("manifest: state of %q must be either text or base64", s.Name)
		}
		if s.Text != nil {
			state.State = []byte(*s.Text)
		}
		m.States = append(m.States, state)
	}
	return m, m.validate()
}

// validate checks what every later use relies on.
func (m Manifest) validate() error {
	var errs []error
	if err := validName("job", m.Job); err != nil {
		errs = append(errs, err)
	}
	if err := validName("shard", m.Shard); err != nil {
		errs = append(errs, err)
	}
	if m.ID <= 0 {
		errs = append(errs, fmt.Errorf("checkpoint id %d", m.ID))
	}
	if year := m.CreatedAt.UTC().Year(); year < 0 || year > 9999 {
		errs = append(errs, fmt.Errorf("creation time in the year %d", year))
	}
	if m.Epoch <= 0 {
		errs = append(errs, fmt.Errorf("epoch %d", m.Epoch))
	}
	names := make(map[string]bool, len(m.States))
	for _, s := range m.States {
		if s.Name == "" || !utf8.ValidString(s.Name) || names[s.Name] {
			errs = append(errs, fmt.Errorf("participant name %q is empty, not UTF-8, or there twice", s.Name))
		}
		names[s.Name] = true
		for _, ref := range s.Refs {
			if ref == "" || !utf8.ValidString(ref) {
				errs = append(errs, fmt.Errorf("blob ref %q of %q is empty or not UTF-8", ref, s.Name))
			}
		}
	}
	for k, v := range m.Config {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			errs = append(errs, fmt.Errorf("configuration key %q or its value is not UTF-8", k))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	return nil
}

// state returns the state of one participant, nil when there is none.
func (m Manifest) state(name string) []byte {
	for _, s := range m.States {
		if s.Name == name {
			return s.State
		}
	}
	return nil
}
