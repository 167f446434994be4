package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const password = "hunter2-correct-horse"

func TestSecret_DoesNotPrintThroughFmt(t *testing.T) {
	type holder struct{ Key Secret }
	s := Secret(password)
	for _, verb := range strings.Split("v s q x X d t c U b o e +v #v 30s", " ") {
		for _, value := range []any{s, &holder{s}, holder{s}, []Secret{s}, map[string]Secret{"k": s}} {
			text := fmt.Sprintf("%"+verb, value)
			assert.NotContains(t, text, "hunter2", "%%%s of %T", verb, value)
			assert.NotContains(t, text, fmt.Sprintf("%x", "hunter2"), "%%%s of %T", verb, value)
		}
	}
	assert.Equal(t, "******", s.String())
	assert.Equal(t, "******", s.GoString())
	assert.Equal(t, "******", fmt.Sprint(Secret("")), "the length is a secret too")
	assert.Equal(t, password, s.Reveal())
}

func TestSecret_DoesNotPrintThroughEncodersAndLoggers(t *testing.T) {
	type holder struct{ Key Secret }
	j, err := json.Marshal(map[string]any{"a": holder{password}, "b": Secret(password)})
	require.NoError(t, err)
	assert.JSONEq(t, `{"a":{"Key":"******"},"b":"******"}`, string(j))
	y, err := yaml.Marshal(holder{password})
	require.NoError(t, err)
	assert.Equal(t, "key: '******'\n", string(y))
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("x", "secret", Secret(password), "holder", holder{password}, "error", fmt.Errorf("bad %v", Secret(password)))
	}
	assert.NotContains(t, log.String(), "hunter2")
}

func TestConfig_DoesNotPrintItsValues(t *testing.T) {
	c := load(t, Map("test", map[string]string{"s3.secret-key": password, "s3.endpoint": "e"}))
	for _, text := range []string{
		fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", *c), fmt.Sprintf("%d", c), fmt.Sprint(c.Effective()), fmt.Sprint(c.Map()),
		fmt.Sprint(struct{ C *Config }{c}), fmt.Sprint(struct{ C Config }{*c}),
	} {
		assert.NotContains(t, text, "hunter2")
	}
	assert.Equal(t, "config[s3.endpoint s3.secret-key]", fmt.Sprint(c))
	assert.NotContains(t, fmt.Sprint((*Config)(nil)), "panic")
	assert.Equal(t, password, Get(c, keySecret).Reveal())
}

// Texts that a user can write by mistake where the secret belongs: none of them may come back in an error.
func TestErrors_DoNotHoldTheTextOfASecret(t *testing.T) {
	leaky := SecretText("token", "", WithCheck(func(s Secret) error { return errors.New("bad token " + s.Reveal()) }))
	r, err := NewRegistry([]Info{keySecret.Info(), leaky.Info(), keyRetries.Info()})
	require.NoError(t, err)
	for _, source := range []Source{
		Map("m", map[string]string{"token": password}),
		Pairs("-D", []string{"token=" + password}),
		Pairs("-D", []string{"s3.secret-key:" + password}),
		Pairs("-D", []string{"s3.secret-kye=" + password}),
		Env([]string{"SLUICE_S3_SECRET__KYE=" + password}),
		YAML("f", strings.NewReader("token: "+password)),
		YAML("f", strings.NewReader("token: *"+password)),
		YAML("f", strings.NewReader("token: &"+password)),
		YAML("f", strings.NewReader("token: !"+password)),
		YAML("f", strings.NewReader("token: !!"+password+" x")),
		YAML("f", strings.NewReader("token: {"+password+"}")),
		YAML("f", strings.NewReader("token: {"+password+": {a: b}}")),
		YAML("f", strings.NewReader("token: ["+password+"]")),
		YAML("f", strings.NewReader("token: @"+password)),
		YAML("f", strings.NewReader("token: %"+password)),
		YAML("f", strings.NewReader("token: |"+password)),
		YAML("f", strings.NewReader("token: `"+password)),
		YAML("f", strings.NewReader("token: '"+password)),
		YAML("f", strings.NewReader("token: "+password+": x")),
		YAML("f", strings.NewReader("tokens: "+password)),
		YAML("f", strings.NewReader("token: "+password+"\ntoken: "+password)),
	} {
		_, err := Load(r, source)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "hunter2")
		assert.NotContains(t, fmt.Sprintf("%+v %#v", err, err), "hunter2")
	}
	_, err = Load(r, Map("m", map[string]string{"token": password}))
	value, ok := errors.AsType[*ValueError](err)
	require.True(t, ok)
	assert.Equal(t, "******", value.Value)
	assert.EqualError(t, err, `m: token = "******": does not pass the option's check`)
}
