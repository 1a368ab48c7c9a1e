PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE secret (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO secret VALUES('hints','9e5ea46bfedfcfdf30f5ef393068f47411402017d6a592b59c8ea1b2d6185934');
INSERT INTO secret VALUES('seals','4c532719eeb86f5f24078839ea6299d61efb0db49fda0a78d533d02a8cd19793');
CREATE TABLE session (
  id INTEGER PRIMARY KEY,
  n INTEGER NOT NULL,
  name TEXT NOT NULL,
  owner TEXT NOT NULL,
  kind TEXT NOT NULL,
  shows INTEGER NOT NULL,
  tip INTEGER,
  metadata TEXT NOT NULL,
  created INTEGER NOT NULL,
  used INTEGER NOT NULL
) STRICT;
INSERT INTO session VALUES(155340040516725,1,'08d47ebef34755afc598cb75dfcca31df97c04752947e0fa','default','hinted',0,373009632411648,'{}',1795134004636,1795134004789);
INSERT INTO session VALUES(373009632342016,3,'1534012a23000023f8abc81c400000000000000000000000','default','named',0,373009632378880,'{"topic":"t0"}',1795134004771,1795134004780);
INSERT INTO session VALUES(373009632460800,4,'1534012a40000687de79856d700000000000000000000000','default','hidden',0,373009632460800,'{}',1795134004800,1795134004800);
INSERT INTO session VALUES(373009632534528,5,'1534012a52000aa38cf00b9c600000000000000000000000','default','hidden',0,373009632579584,'{}',1795134004818,1795134004829);
INSERT INTO session VALUES(3266414893826317,2,'b9ac97b6f810dcf207a459133ea04e55bf610fb68b9b74d7','default','hinted',1,373009632317441,'{}',1795134004758,1795134004765);
CREATE TABLE turn (
  n INTEGER PRIMARY KEY,
  key TEXT NOT NULL,
  session INTEGER NOT NULL,
  parent INTEGER,
  depth INTEGER NOT NULL,
  question TEXT,
  digest TEXT,
  remembers INTEGER NOT NULL,
  model TEXT NOT NULL,
  created INTEGER NOT NULL,
  input TEXT NOT NULL,
  answer TEXT NOT NULL,
  told TEXT NOT NULL,
  echo TEXT
) STRICT;
INSERT INTO turn VALUES(373009631789056,'153401299c0005c4dca98adc2',1,NULL,1,'dMW37HzWK_7e','k7AKRTCC1Luh',1,'echo',1795134004636,'[{"type":"message","role":"system","content":"\u0001R7QXojUOqVRwWwm_v46G0YFzESw"},{"type":"message","role":"user","content":"Hello 0"}]','[{"type":"message","id":"msg_153401299c0005c4dca98adc2_0","role":"assistant","content":"Hello 0"}]','{"status":"completed","finish":"stop","usage":{"inputTokens":302,"cachedTokens":0,"outputTokens":2,"reasoningTokens":0},"notes":{},"endedAt":1795134004642}',NULL);
INSERT INTO turn VALUES(373009632210944,'1534012a030003dd24f547151',1,373009631789056,2,'eDt2MGF2exCR','a-BfsN_A1Huy',1,'echo',1795134004739,'[{"type":"message","role":"user","content":"And then 0?"}]','[{"type":"message","id":"msg_1534012a030003dd24f547151_0","role":"assistant","content":"And then 0?"}]','{"status":"completed","finish":"stop","usage":{"inputTokens":9,"cachedTokens":0,"outputTokens":3,"reasoningTokens":0},"notes":{},"endedAt":1795134004741}','[{"serviceTier":"auto","truncation":null,"isNamed":false,"user":"portico2.irVnrphC.0Xwq1fyRIC0YTXNVSJwyUemx_A2EVIpwvTR8f4KyBY01ig","showsSeals":false},{"background":false,"frequency_penalty":0,"instructions":"Be brief.","max_output_tokens":null,"max_tool_calls":null,"parallel_tool_calls":true,"presence_penalty":0,"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},"safety_identifier":null,"store":true,"temperature":1,"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1,"metadata":{}}]');
INSERT INTO turn VALUES(373009632256000,'1534012a0e000d30d0cfd6bd9',1,373009632210944,3,'BwJyDxEuHHVf','Hmsj4ki-wH9s',1,'echo',1795134004750,'[{"type":"message","role":"user","content":"Third 0"}]','[{"type":"message","id":"msg_1534012a0e000d30d0cfd6bd9_0","role":"assistant","content":"Third 0"}]','{"status":"completed","finish":"stop","usage":{"inputTokens":312,"cachedTokens":0,"outputTokens":2,"reasoningTokens":0},"notes":{},"endedAt":1795134004754}',NULL);
INSERT INTO turn VALUES(373009632288769,'1534012a16001afd2796f8fa0',2,NULL,1,'mDRdOAaSDSeP','8j1lElLShzP4',1,'echo',1795134004758,'[{"type":"message","role":"system","content":"\u00012x1KEH1qrNdtqYRYKth7whuUGX0"},{"type":"message","role":"user","content":"Under a header 0"}]','[{"type":"message","id":"msg_1534012a16001afd2796f8fa0_0","role":"assistant","content":"Under a header 0"}]','{"status":"completed","finish":"stop","usage":{"inputTokens":305,"cachedTokens":0,"outputTokens":4,"reasoningTokens":0},"notes":{},"endedAt":1795134004759}',NULL);
INSERT INTO turn VALUES(373009632317441,'1534012a1d001723b950649bd',2,373009632288769,2,'Cydkk3xeMqQi','ANnAUO05EWVg',0,'echo',1795134004765,'[{"type":"message","role":"user","content":"go on"}]','[{"type":"message","id":"msg_1534012a1d001723b950649bd_0","role":"assistant","content":"go on"}]','{"status":"completed","finish":"stop","usage":{"inputTokens":10,"cachedTokens":0,"outputTokens":2,"reasoningTokens":0},"notes":{},"endedAt":1795134004766}',NULL);
INSERT INTO turn VALUES(373009632342017,'1534012a230015bd392a50674',3,NULL,1,'6S-tMsuR6Znw','5hYf85h9OomC',1,'',1795134004771,'[{"type":"message","role":"user","content":"before"}]','[]','{"status":"completed","finish":"stop","notes":{},"endedAt":1795134004771}',NULL);
INSERT INTO turn VALUES(373009632358401,'1534012a2700139cb638522c0',3,373009632342017,2,'MG9NLJrFagEJ','leFXFsrm22Jm',1,'echo',1795134004775,'[{"type":"message","role":"user","content":"in conversation 0"}]','[{"type":"message","id":"msg_1534012a2700139cb638522c0_0","role":"assistant","content":"in conversation 0"}]','{"status":"completed","finish":"stop","usage":{"inputTokens":4,"cachedTokens":0,"outputTokens":3,"reasoningTokens":0},"notes":{},"endedAt":1795134004776}','[{"serviceTier":"auto","truncation":null,"isNamed":true,"user":null,"showsSeals":false},{"background":false,"frequency_penalty":0,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"parallel_tool_calls":true,"presence_penalty":0,"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},"safety_identifier":null,"store":true,"temperature":1,"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1,"metadata":{}}]');
INSERT INTO turn VALUES(373009632378880,'1534012a2c0002b262dcb1992',3,373009632358401,3,'Fs-0XNBCp8ek','anacK5yBU5M5',1,'',1795134004780,'[{"type":"message","role":"user","content":"added"}]','[]','{"status":"completed","finish":"stop","notes":{},"endedAt":1795134004780}',NULL);
INSERT INTO turn VALUES(373009632411648,'1534012a340008515bc97a544',1,373009632256000,4,'TpAgK1nvSxwo','wAFngC8b9aUK',1,'echo',1795134004789,'[{"type":"message","role":"user","content":"keyed 0"}]','[{"type":"message","id":"msg_1534012a340008515bc97a544_0","role":"assistant","content":"keyed 0"}]','{"status":"completed","finish":"stop","usage":{"inputTokens":316,"cachedTokens":0,"outputTokens":2,"reasoningTokens":0},"notes":{},"endedAt":1795134004790}',NULL);
INSERT INTO turn VALUES(373009632460800,'1534012a40000687de79856d7',4,NULL,1,'a6SVlw0YC6RW','vglVxHvgsu9V',0,'echo',1795134004800,'[{"type":"message","role":"user","content":"background 0"}]','[{"type":"message","id":"msg_1534012a40000687de79856d7_0","role":"assistant","content":"background 0"}]','{"status":"completed","finish":"stop","usage":{"inputTokens":2,"cachedTokens":0,"outputTokens":2,"reasoningTokens":0},"notes":{},"endedAt":1795134004802}','[{"serviceTier":"auto","truncation":null,"isNamed":false,"user":null,"showsSeals":false},{"background":true,"frequency_penalty":0,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"parallel_tool_calls":true,"presence_penalty":0,"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},"safety_identifier":null,"store":true,"temperature":1,"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1,"metadata":{}}]');
INSERT INTO turn VALUES(373009632534528,'1534012a52000aa38cf00b9c6',5,NULL,1,'YITI1d1xCoBr','1WP8_QT7E3tw',0,'echo',1795134004818,'[{"type":"message","role":"user","content":[{"type":"text","text":"chain 0"},{"type":"image","url":"data:image/png;base64,AAAA"}]}]','[{"type":"message","id":"msg_1534012a52000aa38cf00b9c6_0","role":"assistant","content":"chain 0"}]','{"status":"completed","finish":"stop","usage":{"inputTokens":2,"cachedTokens":0,"outputTokens":2,"reasoningTokens":0},"notes":{},"endedAt":1795134004818}','[{"serviceTier":"auto","truncation":null,"isNamed":false,"user":null,"showsSeals":false},{"background":false,"frequency_penalty":0,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"parallel_tool_calls":true,"presence_penalty":0,"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},"safety_identifier":null,"store":true,"temperature":1,"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1,"metadata":{}}]');
INSERT INTO turn VALUES(373009632559105,'1534012a5800173ede136b08c',5,373009632534528,2,NULL,NULL,1,'',1795134004824,'[]','[]','',NULL);
INSERT INTO turn VALUES(373009632579584,'1534012a5d00077451ddbf18d',5,373009632559105,3,'i2-M7GkluepP','ltfGk3yu8nby',1,'echo',1795134004829,'[{"type":"message","role":"user","content":"after"}]','[{"type":"message","id":"msg_1534012a5d00077451ddbf18d_0","role":"assistant","content":"after"}]','{"status":"completed","finish":"stop","usage":{"inputTokens":7,"cachedTokens":0,"outputTokens":1,"reasoningTokens":0},"notes":{},"endedAt":1795134004829}','[{"serviceTier":"auto","truncation":null,"isNamed":true,"user":null,"showsSeals":false},{"background":false,"frequency_penalty":0,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"parallel_tool_calls":true,"presence_penalty":0,"previous_response_id":"resp_1534012a5800173ede136b08c","prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},"safety_identifier":null,"store":true,"temperature":1,"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1,"metadata":{}}]');
CREATE TABLE call (
  session INTEGER NOT NULL,
  id TEXT NOT NULL,
  turn INTEGER NOT NULL,
  PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE text (
  session INTEGER NOT NULL,
  digest TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (session, digest)
) STRICT, WITHOUT ROWID;
INSERT INTO text VALUES(1,'R7QXojUOqVRwWwm_v46G0YFzESw','You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. ');
INSERT INTO text VALUES(2,'2x1KEH1qrNdtqYRYKth7whuUGX0','You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. You are a careful assistant. 0');
CREATE TABLE text_use (
  session INTEGER NOT NULL,
  digest TEXT NOT NULL,
  turn INTEGER NOT NULL,
  PRIMARY KEY (session, digest, turn)
) STRICT, WITHOUT ROWID;
INSERT INTO text_use VALUES(1,'R7QXojUOqVRwWwm_v46G0YFzESw',373009631789056);
INSERT INTO text_use VALUES(2,'2x1KEH1qrNdtqYRYKth7whuUGX0',373009632288769);
CREATE TABLE erased (
  id INTEGER PRIMARY KEY,
  moment INTEGER NOT NULL,
  at INTEGER NOT NULL
) STRICT;
CREATE TABLE doomed (n INTEGER PRIMARY KEY) STRICT;
CREATE TABLE note (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE record (
  turn INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  background INTEGER NOT NULL,
  unnamed INTEGER NOT NULL,
  told TEXT NOT NULL,
  items INTEGER NOT NULL,
  name TEXT,
  fingerprint TEXT,
  log TEXT
) STRICT;
INSERT INTO record VALUES(373009632411648,1,0,0,'continued',8,'conv_5be00663c30b1901cbe2328ef354a34cbaff5334a71a4567','JlGXycUb2ZzW_r874wAiqGCSuYHN8olZ5Qxzo7sCgQM','[{"type":"text","text":"keyed "},{"type":"text","text":"0"},{"type":"usage","usage":{"inputTokens":316,"cachedTokens":0,"outputTokens":2,"reasoningTokens":0}},{"type":"finish","reason":"stop"}]');
INSERT INTO record VALUES(373009632460800,4,1,0,'new',1,'conv_a6baa4fe1f7dd8ef6461db8a75f42339c1a3c652d60e292f','cHBjP4cpiH9YwJd_TDIBmfjQL-GVV6-1K0SG5hEYftQ','[{"type":"text","text":"background "},{"type":"text","text":"0"},{"type":"usage","usage":{"inputTokens":2,"cachedTokens":0,"outputTokens":2,"reasoningTokens":0}},{"type":"finish","reason":"stop"}]');
CREATE UNIQUE INDEX session_n ON session (n);
CREATE INDEX session_owner ON session (owner, n) WHERE kind <> 'hidden';
CREATE INDEX turn_said ON turn (session, question, digest);
CREATE INDEX turn_parent ON turn (parent) WHERE parent IS NOT NULL;
CREATE INDEX record_name ON record (name) WHERE name IS NOT NULL;
COMMIT;
PRAGMA application_id = 1349804911; PRAGMA user_version = 1;
