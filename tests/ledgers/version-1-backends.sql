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
        backend_id TEXT NOT NULL DEFAULT '',
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
INSERT INTO "attempts" VALUES('ot0ypvw1u7-1-1',1,1,'cpu','cpu',1,'{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}','done','recorded-host-1',1.79488735126911616325e+09,'local-e1fef914c45c4bcba3f4bc84efc1282c',1.79488732116645216942e+09,1.79488732121661353111e+09,1.79488732121455049515e+09,1.7948873212176668644e+09,0,'','',0,'',8.6565812428792318273e-07);
INSERT INTO "attempts" VALUES('ot0ypvw1u7-2-1',2,1,'cpu','cpu',1,'{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}','failed','recorded-host-1',1.7948873513684592247e+09,'local-cbf09ae6381e43d9b5681b631336aac9',1.79488732126911616325e+09,1.79488732131721568108e+09,1.79488732131436681747e+09,1.79488732131704926491e+09,1,'','attempt 1 (cpu, variant cpu) failed: left with status 1',0,'',7.45124287075466590214e-07);
INSERT INTO "attempts" VALUES('ot0ypvw1u7-3-1',3,1,'cpu','cpu',1,'{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}','failed','recorded-host-1',1.79488735146688318253e+09,'local-87f0a9096fc44a4ea0b55d82cbac3f7f',1.7948873213684592247e+09,1.7948873214134581089e+09,1.79488732141315555573e+09,1.79488732141631102562e+09,1,'','attempt 1 (cpu, variant cpu) failed: left with status 1; 1 attempt failed and no retry is allowed',0,'',8.76519415113661e-07);
INSERT INTO "attempts" VALUES('ot0ypvw1u7-5-1',5,1,'cpu','cpu',1,'{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}','running','recorded-host-1',1.79488735156536149979e+09,'local-9f55263e81ee4567a5cf0c0c270a97b8',1.79488732146688318253e+09,1.79488732151162552834e+09,1.79488732151064300537e+09,NULL,NULL,'recorded-host','',0,'',0.0);
CREATE TABLE backends (
        name TEXT PRIMARY KEY,
        ok INTEGER NOT NULL,
        since DOUBLE PRECISION NOT NULL,
        failures INTEGER NOT NULL,
        error TEXT NOT NULL,
        next_try DOUBLE PRECISION NOT NULL
    );
INSERT INTO "backends" VALUES('local',1,1.79488732116645216942e+09,0,'',0.0);
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
INSERT INTO "decisions" VALUES(1,1.79488732116645216942e+09,1,'cheapest','recorded-host-1','start','cpu','{"job":"1","kind":"start","pool":"cpu","variant":"cpu","reason":"cpu: 0.000278 USD, starts now","scores":{"cpu":{"score":0.0002777777777777778,"start":1794887321.1664522,"seconds":1.0,"usd":0.0002777777777777778,"chips":1}}}');
INSERT INTO "decisions" VALUES(2,1.79488732116645216942e+09,2,'cheapest','recorded-host-1','wait','cpu','{"job":"2","kind":"wait","pool":"cpu","reason":"cpu: 0.000278 USD, starts in 1.00 s: waits","scores":{"cpu":{"score":0.0002777777777777778,"start":1794887321.1664522,"seconds":1.0,"usd":0.0002777777777777778,"chips":1}}}');
INSERT INTO "decisions" VALUES(3,1.79488732116645216942e+09,3,'cheapest','recorded-host-1','wait','cpu','{"job":"3","kind":"wait","pool":"cpu","reason":"cpu: 0.000278 USD, starts in 2.00 s: waits","scores":{"cpu":{"score":0.0002777777777777778,"start":1794887321.1664522,"seconds":1.0,"usd":0.0002777777777777778,"chips":1}}}');
INSERT INTO "decisions" VALUES(4,1.79488732116645216942e+09,5,'cheapest','recorded-host-1','wait','cpu','{"job":"5","kind":"wait","pool":"cpu","reason":"cpu: 0.167 USD, starts in 3.00 s: waits","scores":{"cpu":{"score":0.16666666666666666,"start":1794887321.1664522,"seconds":600.0,"usd":0.16666666666666666,"chips":1}}}');
INSERT INTO "decisions" VALUES(5,1.79488732116645216942e+09,6,'cheapest','recorded-host-1','wait','cpu','{"job":"6","kind":"wait","pool":"cpu","reason":"cpu: 0.167 USD, starts in 10.1 min: waits","scores":{"cpu":{"score":0.16666666666666666,"start":1794887321.1664522,"seconds":600.0,"usd":0.16666666666666666,"chips":1}}}');
INSERT INTO "decisions" VALUES(6,1.79488732126911616325e+09,2,'cheapest','recorded-host-1','start','cpu','{"job":"2","kind":"start","pool":"cpu","variant":"cpu","reason":"cpu: 0.000278 USD, starts now","scores":{"cpu":{"score":0.0002777777777777778,"start":1794887321.2691162,"seconds":1.0,"usd":0.0002777777777777778,"chips":1}}}');
INSERT INTO "decisions" VALUES(7,1.7948873213684592247e+09,3,'cheapest','recorded-host-1','start','cpu','{"job":"3","kind":"start","pool":"cpu","variant":"cpu","reason":"cpu: 0.000278 USD, starts now","scores":{"cpu":{"score":0.0002777777777777778,"start":1794887321.3684592,"seconds":1.0,"usd":0.0002777777777777778,"chips":1}}}');
INSERT INTO "decisions" VALUES(8,1.79488732146688318253e+09,5,'cheapest','recorded-host-1','start','cpu','{"job":"5","kind":"start","pool":"cpu","variant":"cpu","reason":"cpu: 0.167 USD, starts now","scores":{"cpu":{"score":0.16666666666666666,"start":1794887321.4668832,"seconds":600.0,"usd":0.16666666666666666,"chips":1}}}');
CREATE TABLE events (
        id INTEGER PRIMARY KEY,
        at DOUBLE PRECISION NOT NULL,
        job_id BIGINT NOT NULL REFERENCES jobs (id),
        attempt TEXT NOT NULL,
        kind TEXT NOT NULL,
        text TEXT NOT NULL,
        data TEXT NOT NULL
    );
INSERT INTO "events" VALUES(1,1.79488731775210237503e+09,1,'','submitted','','{}');
INSERT INTO "events" VALUES(2,1.79488731775210237503e+09,2,'','submitted','','{}');
INSERT INTO "events" VALUES(3,1.79488731775210237503e+09,3,'','submitted','','{}');
INSERT INTO "events" VALUES(4,1.79488731775210237503e+09,4,'','submitted','','{}');
INSERT INTO "events" VALUES(5,1.79488731775210237503e+09,5,'','submitted','','{}');
INSERT INTO "events" VALUES(6,1.79488731775210237503e+09,6,'','submitted','','{}');
INSERT INTO "events" VALUES(7,1.7948873192724173069e+09,4,'','cancelled','before it ran','{}');
INSERT INTO "events" VALUES(8,1.79488732116645216942e+09,1,'','decided','start cpu','{"decision":1}');
INSERT INTO "events" VALUES(9,1.79488732116645216942e+09,2,'','decided','wait cpu','{"decision":2}');
INSERT INTO "events" VALUES(10,1.79488732116645216942e+09,3,'','decided','wait cpu','{"decision":3}');
INSERT INTO "events" VALUES(11,1.79488732116645216942e+09,5,'','decided','wait cpu','{"decision":4}');
INSERT INTO "events" VALUES(12,1.79488732116645216942e+09,6,'','decided','wait cpu','{"decision":5}');
INSERT INTO "events" VALUES(13,1.79488732116645216942e+09,1,'ot0ypvw1u7-1-1','intended','cpu, variant cpu','{"number":1}');
INSERT INTO "events" VALUES(14,1.79488732121661353111e+09,1,'ot0ypvw1u7-1-1','handed over','cpu knows it as local-e1fef914c45c4bcba3f4bc84efc1282c','{}');
INSERT INTO "events" VALUES(15,1.79488732126911616325e+09,1,'ot0ypvw1u7-1-1','ended','done','{"state":"done","exit_code":0,"spent":8.656581242879232e-07,"done":1.0}');
INSERT INTO "events" VALUES(16,1.79488732126911616325e+09,1,'ot0ypvw1u7-1-1','done','','{}');
INSERT INTO "events" VALUES(17,1.79488732126911616325e+09,2,'','decided','start cpu','{"decision":6}');
INSERT INTO "events" VALUES(18,1.79488732126911616325e+09,2,'ot0ypvw1u7-2-1','intended','cpu, variant cpu','{"number":1}');
INSERT INTO "events" VALUES(19,1.79488732131721568108e+09,2,'ot0ypvw1u7-2-1','handed over','cpu knows it as local-cbf09ae6381e43d9b5681b631336aac9','{}');
INSERT INTO "events" VALUES(20,1.7948873213684592247e+09,2,'ot0ypvw1u7-2-1','ended','failed: attempt 1 (cpu, variant cpu) failed: left with status 1','{"state":"failed","exit_code":1,"spent":7.451242870754666e-07,"done":0.0}');
INSERT INTO "events" VALUES(21,1.7948873213684592247e+09,2,'ot0ypvw1u7-2-1','waiting','','{}');
INSERT INTO "events" VALUES(22,1.7948873213684592247e+09,3,'','decided','start cpu','{"decision":7}');
INSERT INTO "events" VALUES(23,1.7948873213684592247e+09,3,'ot0ypvw1u7-3-1','intended','cpu, variant cpu','{"number":1}');
INSERT INTO "events" VALUES(24,1.7948873214134581089e+09,3,'ot0ypvw1u7-3-1','handed over','cpu knows it as local-87f0a9096fc44a4ea0b55d82cbac3f7f','{}');
INSERT INTO "events" VALUES(25,1.79488732146688318253e+09,3,'ot0ypvw1u7-3-1','ended','failed: attempt 1 (cpu, variant cpu) failed: left with status 1; 1 attempt failed and no retry is allowed','{"state":"failed","exit_code":1,"spent":8.76519415113661e-07,"done":0.0}');
INSERT INTO "events" VALUES(26,1.79488732146688318253e+09,3,'ot0ypvw1u7-3-1','parked','attempt 1 (cpu, variant cpu) failed: left with status 1; 1 attempt failed and no retry is allowed','{}');
INSERT INTO "events" VALUES(27,1.79488732146688318253e+09,5,'','decided','start cpu','{"decision":8}');
INSERT INTO "events" VALUES(28,1.79488732146688318253e+09,5,'ot0ypvw1u7-5-1','intended','cpu, variant cpu','{"number":1}');
INSERT INTO "events" VALUES(29,1.79488732151162552834e+09,5,'ot0ypvw1u7-5-1','handed over','cpu knows it as local-9f55263e81ee4567a5cf0c0c270a97b8','{}');
INSERT INTO "events" VALUES(30,1.79488732156536149979e+09,5,'ot0ypvw1u7-5-1','running','recorded-host','{"restarts":0}');
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
INSERT INTO "jobs" VALUES(1,'"first, once"','e8166277149c4590dfc012807a74bf6b927bc1e8919c86b6872e3d03b532362d','hello','ada','done',1.79488731775210237503e+09,'{"name":"hello","variants":[{"name":"cpu","family":"cpu","chips":1,"command":["echo","hello"]}],"owner":"ada","given":[{"on":"cpu","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"}}],"checkpoint":{"restart":300.0},"key":"first, once"}','[{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}]','[]',1.0,8.6565812428792318273e-07,'',0,NULL,NULL,0.0,0,1.79488732126911616325e+09);
INSERT INTO "jobs" VALUES(2,NULL,'b67dc01218d81156e5aa63555a7b953f59cc893a03d408a77c3ebf96bb192422','fails','ada','waiting',1.79488731775210237503e+09,'{"name":"fails","variants":[{"name":"cpu","family":"cpu","chips":1,"command":["false"]}],"owner":"ada","given":[{"on":"cpu","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"}}],"checkpoint":{"restart":300.0},"retries":1}','[{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}]','[]',0.0,7.45124287075466590214e-07,'attempt 1 (cpu, variant cpu) failed: left with status 1',1,'["cpu","cpu"]',NULL,1.7948873223684592247e+09,0,1.7948873213684592247e+09);
INSERT INTO "jobs" VALUES(3,NULL,'c0defd3726a6f72bef891349c7cfdfb63c36c6cd581015d44602003113384584','given up','ada','parked',1.79488731775210237503e+09,'{"name":"given up","variants":[{"name":"cpu","family":"cpu","chips":1,"command":["false"]}],"owner":"ada","given":[{"on":"cpu","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"}}],"checkpoint":{"restart":300.0},"retries":0}','[{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}]','[]',0.0,8.76519415113661e-07,'attempt 1 (cpu, variant cpu) failed: left with status 1; 1 attempt failed and no retry is allowed',1,'["cpu","cpu"]',NULL,0.0,0,1.79488732146688318253e+09);
INSERT INTO "jobs" VALUES(4,NULL,'d12ecbbb95b7db502d6689157f556e966ff7dfb2bd228f3d1212fef9668dcdd6','cancelled','bob','cancelled',1.79488731775210237503e+09,'{"name":"cancelled","variants":[{"name":"cpu","family":"cpu","chips":1,"command":["sleep","600"]}],"owner":"bob","given":[{"on":"cpu","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"}}],"checkpoint":{"restart":300.0}}','[{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}]','[]',0.0,0.0,'cancelled by its owner',0,NULL,NULL,0.0,0,1.7948873192724173069e+09);
INSERT INTO "jobs" VALUES(5,NULL,'ca7a74be0471347e046e6e23c1747e2064c3c6400a628250b2d4388859273174','long','bob','active',1.79488731775210237503e+09,'{"name":"long","variants":[{"name":"cpu","family":"cpu","chips":1,"command":["sleep","600"]}],"owner":"bob","given":[{"on":"cpu","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"}}],"budget":100.0,"checkpoint":{"restart":300.0}}','[{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}]','[]',0.0,0.0,'cpu: 0.167 USD, starts now',0,NULL,NULL,0.0,0,1.79488732156536149979e+09);
INSERT INTO "jobs" VALUES(6,NULL,'2d93f7c6f4a41ffdfc5139756c53e46aad4e51e343580c50b41949a569f8fa07','waits é ‮','bob','waiting',1.79488731775210237503e+09,'{"name":"waits \u00e9 \u202e","variants":[{"name":"cpu","family":"cpu","chips":1,"command":["sleep","600"]}],"owner":"bob","given":[{"on":"cpu","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"}}],"deadline":1795146517.7521024,"checkpoint":{"restart":300.0}}','[{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}]','[]',0.0,0.0,'cpu: 0.167 USD, starts in 10.0 min: waits',0,NULL,'cpu',0.0,0,1.79488731775210237503e+09);
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "meta" VALUES('uid','ot0ypvw1u7');
INSERT INTO "meta" VALUES('version','1');
INSERT INTO "meta" VALUES('home:local','{"mark": "75efcf7f7e0743ae8d2211d62541b4c8", "path": "/recorded/attempts/ot0ypvw1u7"}');
INSERT INTO "meta" VALUES('home:routers of recorded-host','{"mark": "75efcf7f7e0743ae8d2211d62541b4c8", "path": "/recorded/attempts/ot0ypvw1u7"}');
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
INSERT INTO "routers" VALUES('recorded-host-1','recorded-host',7288,'cheapest',1.7948873207031109333e+09,1.79488732156536149979e+09,NULL);
CREATE INDEX jobs_open ON jobs (id) WHERE state IN ('active', 'waiting');
CREATE INDEX jobs_changed ON jobs (changed);
CREATE UNIQUE INDEX attempts_under_way ON attempts (job_id) WHERE state IN ('intended', 'running', 'submitted');
CREATE INDEX attempts_held ON attempts (pool, chips) WHERE state IN ('intended', 'running', 'submitted');
CREATE INDEX decisions_job ON decisions (job_id, id);
CREATE INDEX events_job ON events (job_id, id);
COMMIT;
