CREATE TABLE call (
    session bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    turn bigint NOT NULL
);
CREATE UNLOGGED TABLE claim (
    session bigint NOT NULL,
    holder bigint NOT NULL,
    round bigint NOT NULL,
    about text NOT NULL,
    wanted bigint
);
CREATE TABLE delta (
    turn bigint NOT NULL,
    at bigint NOT NULL,
    text text NOT NULL
);
CREATE TABLE doomed (
    n bigint NOT NULL
);
CREATE TABLE erased (
    id bigint NOT NULL,
    moment bigint NOT NULL,
    at bigint NOT NULL
);
CREATE TABLE layout (
    version bigint NOT NULL,
    one bigint NOT NULL
);
CREATE TABLE note (
    name text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE process (
    slot bigint NOT NULL,
    token text NOT NULL,
    beat bigint NOT NULL
);
CREATE TABLE record (
    turn bigint NOT NULL,
    session bigint NOT NULL,
    background bigint NOT NULL,
    unnamed bigint NOT NULL,
    told text NOT NULL COLLATE pg_catalog."C",
    items bigint NOT NULL,
    name text COLLATE pg_catalog."C",
    fingerprint text COLLATE pg_catalog."C",
    log text COLLATE pg_catalog."C"
);
CREATE TABLE running (
    turn bigint NOT NULL,
    key text NOT NULL,
    owner text NOT NULL,
    process bigint NOT NULL,
    session bigint,
    name text,
    fingerprint text,
    placed text,
    stopped bigint DEFAULT 0 NOT NULL,
    heard bigint DEFAULT 0 NOT NULL
);
CREATE TABLE secret (
    name text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE session (
    id bigint NOT NULL,
    n bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    owner text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    shows bigint NOT NULL,
    tip bigint,
    metadata text NOT NULL COLLATE pg_catalog."C",
    created bigint NOT NULL,
    used bigint NOT NULL
);
CREATE SEQUENCE session_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE text (
    session bigint NOT NULL,
    digest text NOT NULL COLLATE pg_catalog."C",
    text text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE text_use (
    session bigint NOT NULL,
    digest text NOT NULL COLLATE pg_catalog."C",
    turn bigint NOT NULL
);
CREATE TABLE turn (
    n bigint NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    session bigint NOT NULL,
    parent bigint,
    depth bigint NOT NULL,
    question text COLLATE pg_catalog."C",
    digest text COLLATE pg_catalog."C",
    remembers bigint NOT NULL,
    model text NOT NULL COLLATE pg_catalog."C",
    created bigint NOT NULL,
    input text NOT NULL COLLATE pg_catalog."C",
    answer text NOT NULL COLLATE pg_catalog."C",
    told text NOT NULL COLLATE pg_catalog."C",
    echo text COLLATE pg_catalog."C"
);
INSERT INTO layout VALUES (1, 1);
INSERT INTO record VALUES (373009636450304, 1, 0, 0, 'continued', 8, 'conv_43ddf5c5cc8a098c284f6892e29a865e9048ff6544c0e043', 'JlGXycUb2ZzW_r874wAiqGCSuYHN8olZ5Qxzo7sCgQM', '[{"type":"text","text":"keyed "},{"type":"text","text":"0"},{"type":"usage","usage":{"inputTokens":316,"cachedTokens":0,"outputTokens":2,"reasoningTokens":0}},{"type":"finish","reason":"stop"}]');
INSERT INTO record VALUES (373009636532224, 5, 1, 0, 'new', 1, 'conv_57494d89bdcc87a1bee54e354d3c0af279a04c39c1a21fae', 'cHBjP4cpiH9YwJd_TDIBmfjQL-GVV6-1K0SG5hEYftQ', '[{"type":"text","text":"background "},{"type":"text","text":"0"},{"type":"usage","usage":{"inputTokens":2,"cachedTokens":0,"outputTokens":2,"reasoningTokens":0}},{"type":"finish","reason":"stop"}]');
INSERT INTO secret VALUES ('hints', 'a5345a496d882351cd9f00eb9f32db187450c8bc788d418e7f95f8491b230417');
INSERT INTO secret VALUES ('seals', '7811e3a76e644b906f2a6e873bf74df140a4c518e96401d1ce25ad3a6444d608');
INSERT INTO session VALUES (759922795899132, 2, '2b325504e68fc0890b99d45c35d13b710fc6d3d05f93cea9', 'default', 'hinted', 1, 373009636208896, '{}', 1795134005706, 1795134005715);
INSERT INTO session VALUES (373009636307200, 3, '1534012deb1006072493761fa00000000000000000000000', 'default', 'named', 0, 373009636409344, '{"topic":"t0"}', 1795134005740, 1795134005764);
INSERT INTO session VALUES (583975021880321, 1, '2131f47bca401f2db7eb1995ee67b8bf78b8840c9ea51288', 'default', 'hinted', 0, 373009636450304, '{}', 1795134005606, 1795134005780);
INSERT INTO session VALUES (373009636532224, 5, '1534012e22000ef0082d6a5bc00000000000000000000000', 'default', 'hidden', 0, 373009636532224, '{}', 1795134005797, 1795134005797);
INSERT INTO session VALUES (373009636642816, 6, '1534012e3d00052927309b67700000000000000000000000', 'default', 'hidden', 0, 373009636724736, '{}', 1795134005821, 1795134005841);
INSERT INTO text VALUES (1, 'R7QXojUOqVRwWwm_v46G0YFzESw', 'You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. ');
INSERT INTO text VALUES (2, '2x1KEH1qrNdtqYRYKth7whuUGX0', 'You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. 0');
INSERT INTO text_use VALUES (1, 'R7QXojUOqVRwWwm_v46G0YFzESw', 373009635762176);
INSERT INTO text_use VALUES (2, '2x1KEH1qrNdtqYRYKth7whuUGX0', 373009636171776);
INSERT INTO turn VALUES (373009635762176, '1534012d660002c8aa10cde04', 1, NULL, 1, 'dMW37HzWK_7e', 'k7AKRTCC1Luh', 1, 'echo', 1795134005606, '[{"type":"message","role":"system","content":"\u0001R7QXojUOqVRwWwm_v46G0YFzESw"},{"type":"message","role":"user","content":"Hello 0"}]', '[{"type":"message","id":"msg_1534012d660002c8aa10cde04_0","role":"assistant","content":"Hello 0"}]', '{"status":"completed","finish":"stop","usage":{"inputTokens":302,"cachedTokens":0,"outputTokens":2,"reasoningTokens":0},"notes":{},"endedAt":1795134005619}', NULL);
INSERT INTO turn VALUES (373009636012032, '1534012da300045d7cfd6d033', 1, 373009635762176, 2, 'eDt2MGF2exCR', 'a-BfsN_A1Huy', 1, 'echo', 1795134005667, '[{"type":"message","role":"user","content":"And then 0?"}]', '[{"type":"message","id":"msg_1534012da300045d7cfd6d033_0","role":"assistant","content":"And then 0?"}]', '{"status":"completed","finish":"stop","usage":{"inputTokens":9,"cachedTokens":0,"outputTokens":3,"reasoningTokens":0},"notes":{},"endedAt":1795134005674}', '[{"serviceTier":"auto","truncation":null,"isNamed":false,"user":"portico2.QhzaBjyq.RZMOD0BzyfKx87BBvLWI9FXt1Nbz02sIlQCJ3wrr65huqg","showsSeals":false},{"background":false,"frequency_penalty":0,"instructions":"Be brief.","max_output_tokens":null,"max_tool_calls":null,"parallel_tool_calls":true,"presence_penalty":0,"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},"safety_identifier":null,"store":true,"temperature":1,"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1,"metadata":{}}]');
INSERT INTO turn VALUES (373009636110336, '1534012dbb000f4b7a9017a18', 1, 373009636012032, 3, 'BwJyDxEuHHVf', 'Hmsj4ki-wH9s', 1, 'echo', 1795134005691, '[{"type":"message","role":"user","content":"Third 0"}]', '[{"type":"message","id":"msg_1534012dbb000f4b7a9017a18_0","role":"assistant","content":"Third 0"}]', '{"status":"completed","finish":"stop","usage":{"inputTokens":312,"cachedTokens":0,"outputTokens":2,"reasoningTokens":0},"notes":{},"endedAt":1795134005696}', NULL);
INSERT INTO turn VALUES (373009636171776, '1534012dca0008e52685c960a', 2, NULL, 1, 'mDRdOAaSDSeP', '8j1lElLShzP4', 1, 'echo', 1795134005706, '[{"type":"message","role":"system","content":"\u00012x1KEH1qrNdtqYRYKth7whuUGX0"},{"type":"message","role":"user","content":"Under a header 0"}]', '[{"type":"message","id":"msg_1534012dca0008e52685c960a_0","role":"assistant","content":"Under a header 0"}]', '{"status":"completed","finish":"stop","usage":{"inputTokens":305,"cachedTokens":0,"outputTokens":4,"reasoningTokens":0},"notes":{},"endedAt":1795134005708}', NULL);
INSERT INTO turn VALUES (373009636208896, '1534012dd3100d4febd6dc959', 2, 373009636171776, 2, 'Cydkk3xeMqQi', 'ANnAUO05EWVg', 0, 'echo', 1795134005715, '[{"type":"message","role":"user","content":"go on"}]', '[{"type":"message","id":"msg_1534012dd3100d4febd6dc959_0","role":"assistant","content":"go on"}]', '{"status":"completed","finish":"stop","usage":{"inputTokens":10,"cachedTokens":0,"outputTokens":2,"reasoningTokens":0},"notes":{},"endedAt":1795134005731}', NULL);
INSERT INTO turn VALUES (373009636311040, '1534012dec0008646c6181370', 3, NULL, 1, '6S-tMsuR6Znw', '5hYf85h9OomC', 1, '', 1795134005740, '[{"type":"message","role":"user","content":"before"}]', '[]', '{"status":"completed","finish":"stop","notes":{},"endedAt":1795134005740}', NULL);
INSERT INTO turn VALUES (373009636335872, '1534012df2100d273903871d2', 3, 373009636311040, 2, 'MG9NLJrFagEJ', 'leFXFsrm22Jm', 1, 'echo', 1795134005746, '[{"type":"message","role":"user","content":"in conversation 0"}]', '[{"type":"message","id":"msg_1534012df2100d273903871d2_0","role":"assistant","content":"in conversation 0"}]', '{"status":"completed","finish":"stop","usage":{"inputTokens":4,"cachedTokens":0,"outputTokens":3,"reasoningTokens":0},"notes":{},"endedAt":1795134005750}', '[{"serviceTier":"auto","truncation":null,"isNamed":true,"user":null,"showsSeals":false},{"background":false,"frequency_penalty":0,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"parallel_tool_calls":true,"presence_penalty":0,"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},"safety_identifier":null,"store":true,"temperature":1,"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1,"metadata":{}}]');
INSERT INTO turn VALUES (373009636409344, '1534012e04000ee2982b90cbd', 3, 373009636335872, 3, 'Fs-0XNBCp8ek', 'anacK5yBU5M5', 1, '', 1795134005764, '[{"type":"message","role":"user","content":"added"}]', '[]', '{"status":"completed","finish":"stop","notes":{},"endedAt":1795134005764}', NULL);
INSERT INTO turn VALUES (373009636450304, '1534012e0e000874692a8ab9b', 1, 373009636110336, 4, 'TpAgK1nvSxwo', 'wAFngC8b9aUK', 1, 'echo', 1795134005780, '[{"type":"message","role":"user","content":"keyed 0"}]', '[{"type":"message","id":"msg_1534012e0e000874692a8ab9b_0","role":"assistant","content":"keyed 0"}]', '{"status":"completed","finish":"stop","usage":{"inputTokens":316,"cachedTokens":0,"outputTokens":2,"reasoningTokens":0},"notes":{},"endedAt":1795134005785}', NULL);
INSERT INTO turn VALUES (373009636532224, '1534012e22000ef0082d6a5bc', 5, NULL, 1, 'a6SVlw0YC6RW', 'vglVxHvgsu9V', 0, 'echo', 1795134005797, '[{"type":"message","role":"user","content":"background 0"}]', '[{"type":"message","id":"msg_1534012e22000ef0082d6a5bc_0","role":"assistant","content":"background 0"}]', '{"status":"completed","finish":"stop","usage":{"inputTokens":2,"cachedTokens":0,"outputTokens":2,"reasoningTokens":0},"notes":{},"endedAt":1795134005802}', '[{"serviceTier":"auto","truncation":null,"isNamed":false,"user":null,"showsSeals":false},{"background":true,"frequency_penalty":0,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"parallel_tool_calls":true,"presence_penalty":0,"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},"safety_identifier":null,"store":true,"temperature":1,"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1,"metadata":{}}]');
INSERT INTO turn VALUES (373009636642816, '1534012e3d00052927309b677', 6, NULL, 1, 'YITI1d1xCoBr', '1WP8_QT7E3tw', 0, 'echo', 1795134005821, '[{"type":"message","role":"user","content":[{"type":"text","text":"chain 0"},{"type":"image","url":"data:image/png;base64,AAAA"}]}]', '[{"type":"message","id":"msg_1534012e3d00052927309b677_0","role":"assistant","content":"chain 0"}]', '{"status":"completed","finish":"stop","usage":{"inputTokens":2,"cachedTokens":0,"outputTokens":2,"reasoningTokens":0},"notes":{},"endedAt":1795134005821}', '[{"serviceTier":"auto","truncation":null,"isNamed":false,"user":null,"showsSeals":false},{"background":false,"frequency_penalty":0,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"parallel_tool_calls":true,"presence_penalty":0,"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},"safety_identifier":null,"store":true,"temperature":1,"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1,"metadata":{}}]');
INSERT INTO turn VALUES (373009636724736, '1534012e510003dc489e21d2a', 6, 373009636675584, 3, 'i2-M7GkluepP', 'ltfGk3yu8nby', 1, 'echo', 1795134005841, '[{"type":"message","role":"user","content":"after"}]', '[{"type":"message","id":"msg_1534012e510003dc489e21d2a_0","role":"assistant","content":"after"}]', '{"status":"completed","finish":"stop","usage":{"inputTokens":7,"cachedTokens":0,"outputTokens":1,"reasoningTokens":0},"notes":{},"endedAt":1795134005844}', '[{"serviceTier":"auto","truncation":null,"isNamed":true,"user":null,"showsSeals":false},{"background":false,"frequency_penalty":0,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"parallel_tool_calls":true,"presence_penalty":0,"previous_response_id":"resp_1534012e45000d3e1b98c72dc","prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},"safety_identifier":null,"store":true,"temperature":1,"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1,"metadata":{}}]');
INSERT INTO turn VALUES (373009636675584, '1534012e45000d3e1b98c72dc', 6, 373009636642816, 2, NULL, NULL, 1, '', 1795134005829, '[]', '[]', '', NULL);
SELECT pg_catalog.setval('session_number', 6, true);
ALTER TABLE ONLY call
    ADD CONSTRAINT call_pkey PRIMARY KEY (session, id);
ALTER TABLE ONLY claim
    ADD CONSTRAINT claim_pkey PRIMARY KEY (session);
ALTER TABLE ONLY delta
    ADD CONSTRAINT delta_pkey PRIMARY KEY (turn, at);
ALTER TABLE ONLY doomed
    ADD CONSTRAINT doomed_pkey PRIMARY KEY (n);
ALTER TABLE ONLY erased
    ADD CONSTRAINT erased_pkey PRIMARY KEY (id);
ALTER TABLE ONLY layout
    ADD CONSTRAINT layout_pkey PRIMARY KEY (one);
ALTER TABLE ONLY note
    ADD CONSTRAINT note_pkey PRIMARY KEY (name);
ALTER TABLE ONLY process
    ADD CONSTRAINT process_pkey PRIMARY KEY (slot);
ALTER TABLE ONLY record
    ADD CONSTRAINT record_pkey PRIMARY KEY (turn);
ALTER TABLE ONLY running
    ADD CONSTRAINT running_pkey PRIMARY KEY (turn);
ALTER TABLE ONLY secret
    ADD CONSTRAINT secret_pkey PRIMARY KEY (name);
ALTER TABLE ONLY session
    ADD CONSTRAINT session_pkey PRIMARY KEY (id);
ALTER TABLE ONLY text
    ADD CONSTRAINT text_pkey PRIMARY KEY (session, digest);
ALTER TABLE ONLY text_use
    ADD CONSTRAINT text_use_pkey PRIMARY KEY (session, digest, turn);
ALTER TABLE ONLY turn
    ADD CONSTRAINT turn_pkey PRIMARY KEY (n);
CREATE INDEX record_name ON record USING btree (name) WHERE (name IS NOT NULL);
CREATE UNIQUE INDEX running_name ON running USING btree (name) WHERE (name IS NOT NULL);
CREATE UNIQUE INDEX session_n ON session USING btree (n);
CREATE INDEX session_owner ON session USING btree (owner, n) WHERE (kind <> 'hidden'::text);
CREATE INDEX turn_digest ON turn USING btree (session, digest) WHERE (digest IS NOT NULL);
CREATE INDEX turn_parent ON turn USING btree (parent) WHERE (parent IS NOT NULL);
CREATE INDEX turn_said ON turn USING btree (session, question, digest);
