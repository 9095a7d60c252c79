BEGIN TRANSACTION;
CREATE TABLE attempts (
        id TEXT PRIMARY KEY,
        job_id BIGINT NOT NULL REFERENCES jobs (id),
        number INTEGER NOT NULL,
        pool TEXT NOT NULL,
        variant TEXT NOT NULL,
        chips INTEGER NOT NULL CHECK (chips > 0),
        plan TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('cancelled', 'done', 'failed', 'intended', 'lost', 'preempted', 'refused', 'running', 'submitted')),
        router TEXT NOT NULL,
        lease DOUBLE PRECISION NOT NULL,
        engine_id TEXT NOT NULL DEFAULT '',
        intended DOUBLE PRECISION NOT NULL,
        submitted DOUBLE PRECISION,
        started DOUBLE PRECISION,
        ended DOUBLE PRECISION,
        exit_code BIGINT,
        place TEXT NOT NULL DEFAULT '',
        reason TEXT NOT NULL DEFAULT '',
        restarts INTEGER NOT NULL DEFAULT 0,
        stop TEXT NOT NULL DEFAULT '',
        spent DOUBLE PRECISION NOT NULL DEFAULT 0,
        UNIQUE (job_id, number)
    );
INSERT INTO "attempts" VALUES('ey203ex7hp-1-1',1,1,'cpu','cpu',1,'{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}','done','recorded-host-1',1.79488734594858551025e+09,'local-53db00afc8ef41a981f0f547862571c7',1.79488731584966206551e+09,1.79488731589705204964e+09,1.79488731589579677582e+09,1.79488731589873027802e+09,0,'','',0,'',8.14861721462673617229e-07);
INSERT INTO "attempts" VALUES('ey203ex7hp-2-1',2,1,'cpu','cpu',1,'{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}','failed','recorded-host-1',1.79488734604534959793e+09,'local-c5db5da648154f158dad45961a395d3f',1.79488731594858551025e+09,1.79488731599222254753e+09,1.79488731599176239967e+09,1.79488731599476695061e+09,1,'','attempt 1 (cpu, variant cpu) failed: left with status 1',0,'',8.34597481621636305427e-07);
INSERT INTO "attempts" VALUES('ey203ex7hp-3-1',3,1,'cpu','cpu',1,'{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}','failed','recorded-host-1',1.79488734614676737785e+09,'local-7db4802843c24691afe623e9f2a45b8a',1.79488731604534959793e+09,1.79488731609542655945e+09,1.79488731609262084961e+09,1.79488731609526777267e+09,1,'','attempt 1 (cpu, variant cpu) failed: left with status 1; 1 attempt failed and no retry is allowed',0,'',7.35256406995985193175e-07);
INSERT INTO "attempts" VALUES('ey203ex7hp-5-1',5,1,'cpu','cpu',1,'{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}','running','recorded-host-1',1.79488734624476385117e+09,'local-de02eeb4043140d8ac0a86bf3352280b',1.79488731614676737785e+09,1.79488731619341564178e+09,1.79488731618954491615e+09,NULL,NULL,'recorded-host','',0,'',0.0);
CREATE TABLE decisions (
        id INTEGER PRIMARY KEY,
        at DOUBLE PRECISION NOT NULL,
        job_id BIGINT NOT NULL REFERENCES jobs (id),
        policy TEXT NOT NULL,
        router TEXT NOT NULL,
        kind TEXT NOT NULL,
        pool TEXT NOT NULL,
        decision TEXT NOT NULL
    );
INSERT INTO "decisions" VALUES(1,1.79488731584966206551e+09,1,'cheapest','recorded-host-1','start','cpu','{"job":"1","kind":"start","pool":"cpu","variant":"cpu","reason":"cpu: 0.000278 USD, starts now","scores":{"cpu":{"score":0.0002777777777777778,"start":1794887315.849662,"seconds":1.0,"usd":0.0002777777777777778,"chips":1}}}');
INSERT INTO "decisions" VALUES(2,1.79488731584966206551e+09,2,'cheapest','recorded-host-1','wait','cpu','{"job":"2","kind":"wait","pool":"cpu","reason":"cpu: 0.000278 USD, starts in 1.00 s: waits","scores":{"cpu":{"score":0.0002777777777777778,"start":1794887315.849662,"seconds":1.0,"usd":0.0002777777777777778,"chips":1}}}');
INSERT INTO "decisions" VALUES(3,1.79488731584966206551e+09,3,'cheapest','recorded-host-1','wait','cpu','{"job":"3","kind":"wait","pool":"cpu","reason":"cpu: 0.000278 USD, starts in 2.00 s: waits","scores":{"cpu":{"score":0.0002777777777777778,"start":1794887315.849662,"seconds":1.0,"usd":0.0002777777777777778,"chips":1}}}');
INSERT INTO "decisions" VALUES(4,1.79488731584966206551e+09,5,'cheapest','recorded-host-1','wait','cpu','{"job":"5","kind":"wait","pool":"cpu","reason":"cpu: 0.167 USD, starts in 3.00 s: waits","scores":{"cpu":{"score":0.16666666666666666,"start":1794887315.849662,"seconds":600.0,"usd":0.16666666666666666,"chips":1}}}');
INSERT INTO "decisions" VALUES(5,1.79488731584966206551e+09,6,'cheapest','recorded-host-1','wait','cpu','{"job":"6","kind":"wait","pool":"cpu","reason":"cpu: 0.167 USD, starts in 10.1 min: waits","scores":{"cpu":{"score":0.16666666666666666,"start":1794887315.849662,"seconds":600.0,"usd":0.16666666666666666,"chips":1}}}');
INSERT INTO "decisions" VALUES(6,1.79488731594858551025e+09,2,'cheapest','recorded-host-1','start','cpu','{"job":"2","kind":"start","pool":"cpu","variant":"cpu","reason":"cpu: 0.000278 USD, starts now","scores":{"cpu":{"score":0.0002777777777777778,"start":1794887315.9485855,"seconds":1.0,"usd":0.0002777777777777778,"chips":1}}}');
INSERT INTO "decisions" VALUES(7,1.79488731604534959793e+09,3,'cheapest','recorded-host-1','start','cpu','{"job":"3","kind":"start","pool":"cpu","variant":"cpu","reason":"cpu: 0.000278 USD, starts now","scores":{"cpu":{"score":0.0002777777777777778,"start":1794887316.0453496,"seconds":1.0,"usd":0.0002777777777777778,"chips":1}}}');
INSERT INTO "decisions" VALUES(8,1.79488731614676737785e+09,5,'cheapest','recorded-host-1','start','cpu','{"job":"5","kind":"start","pool":"cpu","variant":"cpu","reason":"cpu: 0.167 USD, starts now","scores":{"cpu":{"score":0.16666666666666666,"start":1794887316.1467674,"seconds":600.0,"usd":0.16666666666666666,"chips":1}}}');
CREATE TABLE engines (
        name TEXT PRIMARY KEY,
        ok INTEGER NOT NULL,
        since DOUBLE PRECISION NOT NULL,
        failures INTEGER NOT NULL,
        error TEXT NOT NULL,
        next_try DOUBLE PRECISION NOT NULL
    );
INSERT INTO "engines" VALUES('local',1,1.79488731584966206551e+09,0,'',0.0);
CREATE TABLE events (
        id INTEGER PRIMARY KEY,
        at DOUBLE PRECISION NOT NULL,
        job_id BIGINT NOT NULL REFERENCES jobs (id),
        attempt TEXT NOT NULL,
        kind TEXT NOT NULL,
        text TEXT NOT NULL,
        data TEXT NOT NULL
    );
INSERT INTO "events" VALUES(1,1.7948873124480638504e+09,1,'','submitted','','{}');
INSERT INTO "events" VALUES(2,1.7948873124480638504e+09,2,'','submitted','','{}');
INSERT INTO "events" VALUES(3,1.7948873124480638504e+09,3,'','submitted','','{}');
INSERT INTO "events" VALUES(4,1.7948873124480638504e+09,4,'','submitted','','{}');
INSERT INTO "events" VALUES(5,1.7948873124480638504e+09,5,'','submitted','','{}');
INSERT INTO "events" VALUES(6,1.7948873124480638504e+09,6,'','submitted','','{}');
INSERT INTO "events" VALUES(7,1.79488731396984243393e+09,4,'','cancelled','before it ran','{}');
INSERT INTO "events" VALUES(8,1.79488731584966206551e+09,1,'','decided','start cpu','{"decision":1}');
INSERT INTO "events" VALUES(9,1.79488731584966206551e+09,2,'','decided','wait cpu','{"decision":2}');
INSERT INTO "events" VALUES(10,1.79488731584966206551e+09,3,'','decided','wait cpu','{"decision":3}');
INSERT INTO "events" VALUES(11,1.79488731584966206551e+09,5,'','decided','wait cpu','{"decision":4}');
INSERT INTO "events" VALUES(12,1.79488731584966206551e+09,6,'','decided','wait cpu','{"decision":5}');
INSERT INTO "events" VALUES(13,1.79488731584966206551e+09,1,'ey203ex7hp-1-1','intended','cpu, variant cpu','{"number":1}');
INSERT INTO "events" VALUES(14,1.79488731589705204964e+09,1,'ey203ex7hp-1-1','handed over','cpu knows it as local-53db00afc8ef41a981f0f547862571c7','{}');
INSERT INTO "events" VALUES(15,1.79488731594858551025e+09,1,'ey203ex7hp-1-1','ended','done','{"state":"done","exit_code":0,"spent":8.148617214626736e-07,"done":1.0}');
INSERT INTO "events" VALUES(16,1.79488731594858551025e+09,1,'ey203ex7hp-1-1','done','','{}');
INSERT INTO "events" VALUES(17,1.79488731594858551025e+09,2,'','decided','start cpu','{"decision":6}');
INSERT INTO "events" VALUES(18,1.79488731594858551025e+09,2,'ey203ex7hp-2-1','intended','cpu, variant cpu','{"number":1}');
INSERT INTO "events" VALUES(19,1.79488731599222254753e+09,2,'ey203ex7hp-2-1','handed over','cpu knows it as local-c5db5da648154f158dad45961a395d3f','{}');
INSERT INTO "events" VALUES(20,1.79488731604534959793e+09,2,'ey203ex7hp-2-1','ended','failed: attempt 1 (cpu, variant cpu) failed: left with status 1','{"state":"failed","exit_code":1,"spent":8.345974816216363e-07,"done":0.0}');
INSERT INTO "events" VALUES(21,1.79488731604534959793e+09,2,'ey203ex7hp-2-1','waiting','','{}');
INSERT INTO "events" VALUES(22,1.79488731604534959793e+09,3,'','decided','start cpu','{"decision":7}');
INSERT INTO "events" VALUES(23,1.79488731604534959793e+09,3,'ey203ex7hp-3-1','intended','cpu, variant cpu','{"number":1}');
INSERT INTO "events" VALUES(24,1.79488731609542655945e+09,3,'ey203ex7hp-3-1','handed over','cpu knows it as local-7db4802843c24691afe623e9f2a45b8a','{}');
INSERT INTO "events" VALUES(25,1.79488731614676737785e+09,3,'ey203ex7hp-3-1','ended','failed: attempt 1 (cpu, variant cpu) failed: left with status 1; 1 attempt failed and no retry is allowed','{"state":"failed","exit_code":1,"spent":7.352564069959852e-07,"done":0.0}');
INSERT INTO "events" VALUES(26,1.79488731614676737785e+09,3,'ey203ex7hp-3-1','parked','attempt 1 (cpu, variant cpu) failed: left with status 1; 1 attempt failed and no retry is allowed','{}');
INSERT INTO "events" VALUES(27,1.79488731614676737785e+09,5,'','decided','start cpu','{"decision":8}');
INSERT INTO "events" VALUES(28,1.79488731614676737785e+09,5,'ey203ex7hp-5-1','intended','cpu, variant cpu','{"number":1}');
INSERT INTO "events" VALUES(29,1.79488731619341564178e+09,5,'ey203ex7hp-5-1','handed over','cpu knows it as local-de02eeb4043140d8ac0a86bf3352280b','{}');
INSERT INTO "events" VALUES(30,1.79488731624476385117e+09,5,'ey203ex7hp-5-1','running','recorded-host','{"restarts":0}');
CREATE TABLE jobs (
        id INTEGER PRIMARY KEY,
        key TEXT UNIQUE,
        digest TEXT NOT NULL,
        name TEXT NOT NULL,
        owner TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('active', 'cancelled', 'done', 'parked', 'waiting')),
        submitted DOUBLE PRECISION NOT NULL,
        job TEXT NOT NULL,
        options TEXT NOT NULL,
        unable TEXT NOT NULL,
        done DOUBLE PRECISION NOT NULL DEFAULT 0 CHECK (done BETWEEN 0 AND 1),
        spent DOUBLE PRECISION NOT NULL DEFAULT 0,
        reason TEXT NOT NULL DEFAULT '',
        failures INTEGER NOT NULL DEFAULT 0,
        failed_at TEXT,
        waits_for TEXT,
        not_before DOUBLE PRECISION NOT NULL DEFAULT 0,
        cancel INTEGER NOT NULL DEFAULT 0,
        changed DOUBLE PRECISION NOT NULL
    );
INSERT INTO "jobs" VALUES(1,'"first, once"','e8166277149c4590dfc012807a74bf6b927bc1e8919c86b6872e3d03b532362d','hello','ada','done',1.7948873124480638504e+09,'{"name":"hello","variants":[{"name":"cpu","family":"cpu","chips":1,"command":["echo","hello"]}],"owner":"ada","given":[{"on":"cpu","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"}}],"checkpoint":{"restart":300.0},"key":"first, once"}','[{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}]','[]',1.0,8.14861721462673617229e-07,'',0,NULL,NULL,0.0,0,1.79488731594858551025e+09);
INSERT INTO "jobs" VALUES(2,NULL,'b67dc01218d81156e5aa63555a7b953f59cc893a03d408a77c3ebf96bb192422','fails','ada','waiting',1.7948873124480638504e+09,'{"name":"fails","variants":[{"name":"cpu","family":"cpu","chips":1,"command":["false"]}],"owner":"ada","given":[{"on":"cpu","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"}}],"checkpoint":{"restart":300.0},"retries":1}','[{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}]','[]',0.0,8.34597481621636305427e-07,'attempt 1 (cpu, variant cpu) failed: left with status 1',1,'["cpu","cpu"]',NULL,1.79488731704534959793e+09,0,1.79488731604534959793e+09);
INSERT INTO "jobs" VALUES(3,NULL,'c0defd3726a6f72bef891349c7cfdfb63c36c6cd581015d44602003113384584','given up','ada','parked',1.7948873124480638504e+09,'{"name":"given up","variants":[{"name":"cpu","family":"cpu","chips":1,"command":["false"]}],"owner":"ada","given":[{"on":"cpu","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"}}],"checkpoint":{"restart":300.0},"retries":0}','[{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}]','[]',0.0,7.35256406995985193175e-07,'attempt 1 (cpu, variant cpu) failed: left with status 1; 1 attempt failed and no retry is allowed',1,'["cpu","cpu"]',NULL,0.0,0,1.79488731614676737785e+09);
INSERT INTO "jobs" VALUES(4,NULL,'d12ecbbb95b7db502d6689157f556e966ff7dfb2bd228f3d1212fef9668dcdd6','cancelled','bob','cancelled',1.7948873124480638504e+09,'{"name":"cancelled","variants":[{"name":"cpu","family":"cpu","chips":1,"command":["sleep","600"]}],"owner":"bob","given":[{"on":"cpu","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"}}],"checkpoint":{"restart":300.0}}','[{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}]','[]',0.0,0.0,'cancelled by its owner',0,NULL,NULL,0.0,0,1.79488731396984243393e+09);
INSERT INTO "jobs" VALUES(5,NULL,'ca7a74be0471347e046e6e23c1747e2064c3c6400a628250b2d4388859273174','long','bob','active',1.7948873124480638504e+09,'{"name":"long","variants":[{"name":"cpu","family":"cpu","chips":1,"command":["sleep","600"]}],"owner":"bob","given":[{"on":"cpu","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"}}],"budget":100.0,"checkpoint":{"restart":300.0}}','[{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}]','[]',0.0,0.0,'cpu: 0.167 USD, starts now',0,NULL,NULL,0.0,0,1.79488731624476385117e+09);
INSERT INTO "jobs" VALUES(6,NULL,'2d93f7c6f4a41ffdfc5139756c53e46aad4e51e343580c50b41949a569f8fa07','waits é ‮','bob','waiting',1.7948873124480638504e+09,'{"name":"waits \u00e9 \u202e","variants":[{"name":"cpu","family":"cpu","chips":1,"command":["sleep","600"]}],"owner":"bob","given":[{"on":"cpu","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"}}],"deadline":1795146512.4480639,"checkpoint":{"restart":300.0}}','[{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}]','[]',0.0,0.0,'cpu: 0.167 USD, starts in 10.0 min: waits',0,NULL,'cpu',0.0,0,1.7948873124480638504e+09);
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "meta" VALUES('uid','ey203ex7hp');
INSERT INTO "meta" VALUES('version','1');
INSERT INTO "meta" VALUES('home:local','{"mark": "7689ed2bf6c84281bb5b5ed03dc2923f", "path": "/recorded/attempts/ey203ex7hp"}');
INSERT INTO "meta" VALUES('home:routers of recorded-host','{"mark": "7689ed2bf6c84281bb5b5ed03dc2923f", "path": "/recorded/attempts/ey203ex7hp"}');
CREATE TABLE pools (
        name TEXT PRIMARY KEY,
        drained INTEGER NOT NULL,
        reason TEXT NOT NULL,
        since DOUBLE PRECISION NOT NULL
    );
CREATE TABLE routers (
        id TEXT PRIMARY KEY,
        host TEXT NOT NULL,
        pid BIGINT NOT NULL,
        policy TEXT NOT NULL,
        started DOUBLE PRECISION NOT NULL,
        seen DOUBLE PRECISION NOT NULL,
        stopped DOUBLE PRECISION
    );
INSERT INTO "routers" VALUES('recorded-host-1','recorded-host',7265,'cheapest',1.79488731539770102501e+09,1.79488731624476385117e+09,NULL);
CREATE INDEX jobs_open ON jobs (id) WHERE state IN ('active', 'waiting');
CREATE INDEX jobs_changed ON jobs (changed);
CREATE UNIQUE INDEX attempts_under_way ON attempts (job_id) WHERE state IN ('intended', 'running', 'submitted');
CREATE INDEX attempts_held ON attempts (pool, chips) WHERE state IN ('intended', 'running', 'submitted');
CREATE INDEX decisions_job ON decisions (job_id, id);
CREATE INDEX events_job ON events (job_id, id);
COMMIT;
