BEGIN TRANSACTION;
CREATE TABLE attempts (
        id TEXT PRIMARY KEY,
        job_id BIGINT NOT NULL REFERENCES jobs (id),
        number INTEGER NOT NULL,
        pool TEXT NOT NULL,
        variant TEXT NOT NULL,
        chips INTEGER NOT NULL CHECK (chips > 0),
        plan TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('cancelled', 'failed', 'intended', 'lost', 'preempted', 'refused', 'running', 'submitted', 'succeeded')),
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
        digest TEXT NOT NULL DEFAULT '',
        seen DOUBLE PRECISION NOT NULL DEFAULT 0,
        UNIQUE (job_id, number)
    );
INSERT INTO "attempts" VALUES('m8gz54e4oh-1-1',1,1,'cpu','cpu',1,'{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}','succeeded','recorded-host-1',1.79510238655645561222e+09,'local-9a8a442e92d04fa581b6f2ff4e310ac2',1.7951023562481224537e+09,1.7951023565040638447e+09,1.79510235648755931857e+09,1.79510235651809644695e+09,0,'','',0,'',8.48253568013509110044e-06,'2647e50bd900f1448d5dd1be30cf85358811398ff5cad277aa4b5ec4472c99a5',0.0);
INSERT INTO "attempts" VALUES('m8gz54e4oh-2-1',2,1,'cpu','cpu',1,'{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}','failed','recorded-host-1',1.7951023869845371246e+09,'local-4a430d0338f94467917db7b104922768',1.79510235655645561218e+09,1.79510235690401101114e+09,1.79510235684748935703e+09,1.7951023568938596249e+09,1,'','attempt 1 (cpu, variant cpu) failed: left with status 1',0,'',1.28806299633449985596e-05,'ffcdf1e6b9156afc92262abfd09ac7da2c109696169636b658266cba749b12ac',0.0);
INSERT INTO "attempts" VALUES('m8gz54e4oh-3-1',3,1,'cpu','cpu',1,'{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}','failed','recorded-host-1',1.79510238733526420592e+09,'local-bb8a0075b5ce495c8215def61d679383',1.79510235698453712461e+09,1.79510235727166366577e+09,1795102357.23124,1.79510235726256918908e+09,1,'','attempt 1 (cpu, variant cpu) failed: left with status 1; 1 attempt failed and no retry is allowed',0,'',8.70254304673936551414e-06,'cee64421100084e14121bd4630d25ccce57fbe38b3d1f3e569d661b10c7e4d06',0.0);
INSERT INTO "attempts" VALUES('m8gz54e4oh-5-1',5,1,'cpu','cpu',1,'{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}','running','recorded-host-1',1.79510238779796361917e+09,'local-9491cd667fd14bba9405e8f4ade3bdca',1.79510235733526420597e+09,1.79510235773188042644e+09,1.79510235767914509774e+09,NULL,NULL,'recorded-host','',0,'',0.0,'65ae6354b46257451d691acc7fb2d08d5237c4bcd07ca0fdf09ad5412c4ded5d',0.0);
CREATE TABLE audit (
        chain TEXT NOT NULL,
        number BIGINT NOT NULL,
        at DOUBLE PRECISION NOT NULL,
        who TEXT NOT NULL,
        role TEXT NOT NULL,
        command TEXT NOT NULL,
        job_id BIGINT,
        detail TEXT NOT NULL,
        previous TEXT NOT NULL,
        hash TEXT NOT NULL,
        PRIMARY KEY (chain, number)
    );
INSERT INTO "audit" VALUES('root@recorded-host',1,1.79510231122517466542e+09,'root (OS user 0)','operator','submit',NULL,'{"jobs": [1, 6], "sha256": "a2b168334f18cbd5432acd17a43650ad65a94f8f180b2f3ef2ab58e977098a1c"}','fdf07aef7cc27b39ef48e8959ee9eb251e23718551e16b1a7126237f8b60f759','f2f890a074fad08a82d16f4c993feb2011a4ccf6e656ae5b8df9f9b07508155d');
INSERT INTO "audit" VALUES('root@recorded-host',2,1.7951023134340960979e+09,'root (OS user 0)','operator','cancel',4,'','f2f890a074fad08a82d16f4c993feb2011a4ccf6e656ae5b8df9f9b07508155d','ea64276286cd53d9e0721b71b0f6581fd75d0c534dbcc9180bc648204390f05c');
INSERT INTO "audit" VALUES('router recorded-host-1',1,1.7951023150916366577e+09,'root (OS user 0)','operator','router run',NULL,'policy cheapest, pid 14099','8cf8a9c8582f38b6f1222b0d2667c8d095f7b738d78a914eb745d5b11d100fab','d9863e35ef206259e7ee2d25b6910c213de054363793ee0ec594d4b01ec78de9');
INSERT INTO "audit" VALUES('router recorded-host-1',2,1.7951023562481224537e+09,'root (OS user 0)','operator','decide',NULL,'{"decisions": [1, 5], "sha256": "3383dbbfb9e1c82dd9ba45c7160bee6004dfc6e944630282e7f50a66c8f06f21"}','d9863e35ef206259e7ee2d25b6910c213de054363793ee0ec594d4b01ec78de9','0eff40dd7f8beafadecd9b8ff2a87af4c1c25e0dfe182ada172be7ddcddf1fd1');
INSERT INTO "audit" VALUES('router recorded-host-1',3,1.79510235655645561218e+09,'root (OS user 0)','operator','decide',NULL,'{"decisions": [6, 6], "sha256": "147526096de21b69197baecd3e77514bcbe7dae406e7f6997bd0866628840282"}','0eff40dd7f8beafadecd9b8ff2a87af4c1c25e0dfe182ada172be7ddcddf1fd1','3adc849d484f52d6050078cf9f69b9d2cc39dab94385296ddfc301ba176a36d9');
INSERT INTO "audit" VALUES('router recorded-host-1',4,1.79510235698453712461e+09,'root (OS user 0)','operator','decide',NULL,'{"decisions": [7, 7], "sha256": "e4933f78d9567b85b200184a46db288039eef322c8414ab19d9dd0bca43acab7"}','3adc849d484f52d6050078cf9f69b9d2cc39dab94385296ddfc301ba176a36d9','4f118a6dccfbc5752deefcd1a9c74f997a477e72f674c83fed9e577e52a5bba0');
INSERT INTO "audit" VALUES('router recorded-host-1',5,1.79510235733526420597e+09,'root (OS user 0)','operator','decide',NULL,'{"decisions": [8, 8], "sha256": "4096413867c95d3439784320e233ba8727d4bf1fed4e5f07c5514fa50f6f45a5"}','4f118a6dccfbc5752deefcd1a9c74f997a477e72f674c83fed9e577e52a5bba0','71cfe3058dc003c30910a999d0ced302c224edf8d89f11d9b591afbd4f075352');
CREATE TABLE backends (
        name TEXT PRIMARY KEY,
        ok INTEGER NOT NULL,
        since DOUBLE PRECISION NOT NULL,
        failures INTEGER NOT NULL,
        error TEXT NOT NULL,
        next_try DOUBLE PRECISION NOT NULL
    );
INSERT INTO "backends" VALUES('local',1,1.7951023562481224537e+09,0,'',0.0);
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
INSERT INTO "decisions" VALUES(1,1.7951023562481224537e+09,1,'cheapest','recorded-host-1','start','cpu','{"job":"1","kind":"start","pool":"cpu","variant":"cpu","reason":"cpu: 0.000278 USD, starts now","scores":{"cpu":{"score":0.0002777777777777778,"start":1795102356.2481225,"seconds":1.0,"usd":0.0002777777777777778,"chips":1}}}');
INSERT INTO "decisions" VALUES(2,1.7951023562481224537e+09,2,'cheapest','recorded-host-1','wait','cpu','{"job":"2","kind":"wait","pool":"cpu","reason":"cpu: 0.000278 USD, starts in 1.00 s: waits","scores":{"cpu":{"score":0.0002777777777777778,"start":1795102356.2481225,"seconds":1.0,"usd":0.0002777777777777778,"chips":1}}}');
INSERT INTO "decisions" VALUES(3,1.7951023562481224537e+09,3,'cheapest','recorded-host-1','wait','cpu','{"job":"3","kind":"wait","pool":"cpu","reason":"cpu: 0.000278 USD, starts in 2.00 s: waits","scores":{"cpu":{"score":0.0002777777777777778,"start":1795102356.2481225,"seconds":1.0,"usd":0.0002777777777777778,"chips":1}}}');
INSERT INTO "decisions" VALUES(4,1.7951023562481224537e+09,5,'cheapest','recorded-host-1','wait','cpu','{"job":"5","kind":"wait","pool":"cpu","reason":"cpu: 0.167 USD, starts in 3.00 s: waits","scores":{"cpu":{"score":0.16666666666666666,"start":1795102356.2481225,"seconds":600.0,"usd":0.16666666666666666,"chips":1}}}');
INSERT INTO "decisions" VALUES(5,1.7951023562481224537e+09,6,'cheapest','recorded-host-1','wait','cpu','{"job":"6","kind":"wait","pool":"cpu","reason":"cpu: 0.167 USD, starts in 10.1 min: waits","scores":{"cpu":{"score":0.16666666666666666,"start":1795102356.2481225,"seconds":600.0,"usd":0.16666666666666666,"chips":1}}}');
INSERT INTO "decisions" VALUES(6,1.79510235655645561218e+09,2,'cheapest','recorded-host-1','start','cpu','{"job":"2","kind":"start","pool":"cpu","variant":"cpu","reason":"cpu: 0.000278 USD, starts now","scores":{"cpu":{"score":0.0002777777777777778,"start":1795102356.5564556,"seconds":1.0,"usd":0.0002777777777777778,"chips":1}}}');
INSERT INTO "decisions" VALUES(7,1.79510235698453712461e+09,3,'cheapest','recorded-host-1','start','cpu','{"job":"3","kind":"start","pool":"cpu","variant":"cpu","reason":"cpu: 0.000278 USD, starts now","scores":{"cpu":{"score":0.0002777777777777778,"start":1795102356.9845371,"seconds":1.0,"usd":0.0002777777777777778,"chips":1}}}');
INSERT INTO "decisions" VALUES(8,1.79510235733526420597e+09,5,'cheapest','recorded-host-1','start','cpu','{"job":"5","kind":"start","pool":"cpu","variant":"cpu","reason":"cpu: 0.167 USD, starts now","scores":{"cpu":{"score":0.16666666666666666,"start":1795102357.3352642,"seconds":600.0,"usd":0.16666666666666666,"chips":1}}}');
CREATE TABLE events (
        id INTEGER PRIMARY KEY,
        at DOUBLE PRECISION NOT NULL,
        job_id BIGINT NOT NULL REFERENCES jobs (id),
        attempt TEXT NOT NULL,
        kind TEXT NOT NULL,
        text TEXT NOT NULL,
        data TEXT NOT NULL
    );
INSERT INTO "events" VALUES(1,1.79510231122517466542e+09,1,'','submitted','','{}');
INSERT INTO "events" VALUES(2,1.79510231122517466542e+09,2,'','submitted','','{}');
INSERT INTO "events" VALUES(3,1.79510231122517466542e+09,3,'','submitted','','{}');
INSERT INTO "events" VALUES(4,1.79510231122517466542e+09,4,'','submitted','','{}');
INSERT INTO "events" VALUES(5,1.79510231122517466542e+09,5,'','submitted','','{}');
INSERT INTO "events" VALUES(6,1.79510231122517466542e+09,6,'','submitted','','{}');
INSERT INTO "events" VALUES(7,1.7951023134340960979e+09,4,'','cancelled','before it ran','{}');
INSERT INTO "events" VALUES(8,1.7951023562481224537e+09,1,'','decided','start cpu','{"decision":1}');
INSERT INTO "events" VALUES(9,1.7951023562481224537e+09,2,'','decided','wait cpu','{"decision":2}');
INSERT INTO "events" VALUES(10,1.7951023562481224537e+09,3,'','decided','wait cpu','{"decision":3}');
INSERT INTO "events" VALUES(11,1.7951023562481224537e+09,5,'','decided','wait cpu','{"decision":4}');
INSERT INTO "events" VALUES(12,1.7951023562481224537e+09,6,'','decided','wait cpu','{"decision":5}');
INSERT INTO "events" VALUES(13,1.7951023562481224537e+09,1,'m8gz54e4oh-1-1','intended','cpu, variant cpu','{"number":1}');
INSERT INTO "events" VALUES(14,1.7951023565040638447e+09,1,'m8gz54e4oh-1-1','submitted','cpu knows it as local-9a8a442e92d04fa581b6f2ff4e310ac2','{}');
INSERT INTO "events" VALUES(15,1.79510235655645561218e+09,1,'m8gz54e4oh-1-1','ended','succeeded','{"state":"succeeded","exit_code":0,"spent":8.482535680135091e-06,"done":1.0}');
INSERT INTO "events" VALUES(16,1.79510235655645561218e+09,1,'m8gz54e4oh-1-1','succeeded','','{}');
INSERT INTO "events" VALUES(17,1.79510235655645561218e+09,2,'','decided','start cpu','{"decision":6}');
INSERT INTO "events" VALUES(18,1.79510235655645561218e+09,2,'m8gz54e4oh-2-1','intended','cpu, variant cpu','{"number":1}');
INSERT INTO "events" VALUES(19,1.79510235690401101114e+09,2,'m8gz54e4oh-2-1','submitted','cpu knows it as local-4a430d0338f94467917db7b104922768','{}');
INSERT INTO "events" VALUES(20,1.79510235698453712461e+09,2,'m8gz54e4oh-2-1','ended','failed: attempt 1 (cpu, variant cpu) failed: left with status 1','{"state":"failed","exit_code":1,"spent":1.2880629963344999e-05,"done":0.0}');
INSERT INTO "events" VALUES(21,1.79510235698453712461e+09,2,'m8gz54e4oh-2-1','pending','','{}');
INSERT INTO "events" VALUES(22,1.79510235698453712461e+09,3,'','decided','start cpu','{"decision":7}');
INSERT INTO "events" VALUES(23,1.79510235698453712461e+09,3,'m8gz54e4oh-3-1','intended','cpu, variant cpu','{"number":1}');
INSERT INTO "events" VALUES(24,1.79510235727166366577e+09,3,'m8gz54e4oh-3-1','submitted','cpu knows it as local-bb8a0075b5ce495c8215def61d679383','{}');
INSERT INTO "events" VALUES(25,1.79510235733526420597e+09,3,'m8gz54e4oh-3-1','ended','failed: attempt 1 (cpu, variant cpu) failed: left with status 1; 1 attempt failed and no retry is allowed','{"state":"failed","exit_code":1,"spent":8.702543046739366e-06,"done":0.0}');
INSERT INTO "events" VALUES(26,1.79510235733526420597e+09,3,'m8gz54e4oh-3-1','failed','attempt 1 (cpu, variant cpu) failed: left with status 1; 1 attempt failed and no retry is allowed','{}');
INSERT INTO "events" VALUES(27,1.79510235733526420597e+09,5,'','decided','start cpu','{"decision":8}');
INSERT INTO "events" VALUES(28,1.79510235733526420597e+09,5,'m8gz54e4oh-5-1','intended','cpu, variant cpu','{"number":1}');
INSERT INTO "events" VALUES(29,1.79510235773188042644e+09,5,'m8gz54e4oh-5-1','submitted','cpu knows it as local-9491cd667fd14bba9405e8f4ade3bdca','{}');
INSERT INTO "events" VALUES(30,1.79510235779796361926e+09,5,'m8gz54e4oh-5-1','running','recorded-host','{"restarts":0}');
CREATE TABLE jobs (
        id INTEGER PRIMARY KEY,
        key TEXT UNIQUE,
        digest TEXT NOT NULL,
        name TEXT NOT NULL,
        owner TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('cancelled', 'failed', 'pending', 'running', 'succeeded')),
        submitted DOUBLE PRECISION NOT NULL,
        job TEXT NOT NULL,
        options TEXT NOT NULL,
        infeasible TEXT NOT NULL,
        done DOUBLE PRECISION NOT NULL DEFAULT 0 CHECK (done BETWEEN 0 AND 1),
        spent DOUBLE PRECISION NOT NULL DEFAULT 0,
        reason TEXT NOT NULL DEFAULT '',
        failures INTEGER NOT NULL DEFAULT 0,
        failed_at TEXT,
        waits_for TEXT,
        not_before DOUBLE PRECISION NOT NULL DEFAULT 0,
        cancel INTEGER NOT NULL DEFAULT 0,
        changed DOUBLE PRECISION NOT NULL,
        submitter TEXT NOT NULL DEFAULT '',
        team TEXT NOT NULL DEFAULT ''
    );
INSERT INTO "jobs" VALUES(1,'"first, once"','e8166277149c4590dfc012807a74bf6b927bc1e8919c86b6872e3d03b532362d','hello','ada','succeeded',1.79510231122517466542e+09,'{"name":"hello","variants":[{"name":"cpu","family":"cpu","chips":1,"command":["echo","hello"]}],"owner":"ada","given":[{"on":"cpu","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"}}],"checkpoint":{"restart":300.0},"key":"first, once"}','[{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}]','[]',1.0,8.48253568013509110044e-06,'',0,NULL,NULL,0.0,0,1.79510235655645561218e+09,'root','');
INSERT INTO "jobs" VALUES(2,NULL,'b67dc01218d81156e5aa63555a7b953f59cc893a03d408a77c3ebf96bb192422','fails','ada','pending',1.79510231122517466542e+09,'{"name":"fails","variants":[{"name":"cpu","family":"cpu","chips":1,"command":["false"]}],"owner":"ada","given":[{"on":"cpu","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"}}],"checkpoint":{"restart":300.0},"retries":1}','[{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}]','[]',0.0,1.28806299633449985596e-05,'attempt 1 (cpu, variant cpu) failed: left with status 1',1,'["cpu","cpu"]',NULL,1.7951023579845371246e+09,0,1.79510235698453712461e+09,'root','');
INSERT INTO "jobs" VALUES(3,NULL,'c0defd3726a6f72bef891349c7cfdfb63c36c6cd581015d44602003113384584','given up','ada','failed',1.79510231122517466542e+09,'{"name":"given up","variants":[{"name":"cpu","family":"cpu","chips":1,"command":["false"]}],"owner":"ada","given":[{"on":"cpu","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"}}],"checkpoint":{"restart":300.0},"retries":0}','[{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":1.0,"low":1.0,"high":1.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}]','[]',0.0,8.70254304673936551414e-06,'attempt 1 (cpu, variant cpu) failed: left with status 1; 1 attempt failed and no retry is allowed',1,'["cpu","cpu"]',NULL,0.0,0,1.79510235733526420597e+09,'root','');
INSERT INTO "jobs" VALUES(4,NULL,'d12ecbbb95b7db502d6689157f556e966ff7dfb2bd228f3d1212fef9668dcdd6','cancelled','bob','cancelled',1.79510231122517466542e+09,'{"name":"cancelled","variants":[{"name":"cpu","family":"cpu","chips":1,"command":["sleep","600"]}],"owner":"bob","given":[{"on":"cpu","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"}}],"checkpoint":{"restart":300.0}}','[{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}]','[]',0.0,0.0,'cancelled on request',0,NULL,NULL,0.0,0,1.7951023134340960979e+09,'root','');
INSERT INTO "jobs" VALUES(5,NULL,'ca7a74be0471347e046e6e23c1747e2064c3c6400a628250b2d4388859273174','long','bob','running',1.79510231122517466542e+09,'{"name":"long","variants":[{"name":"cpu","family":"cpu","chips":1,"command":["sleep","600"]}],"owner":"bob","given":[{"on":"cpu","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"}}],"budget":100.0,"checkpoint":{"restart":300.0}}','[{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}]','[]',0.0,0.0,'cpu: 0.167 USD, starts now',0,NULL,NULL,0.0,0,1.79510235779796361926e+09,'root','');
INSERT INTO "jobs" VALUES(6,NULL,'cfdeb1c9accd1c724d15c2c6254e28354177d54cf754b14011c538701bba6936','waits é','bob','pending',1.79510231122517466542e+09,'{"name":"waits \u00e9","variants":[{"name":"cpu","family":"cpu","chips":1,"command":["sleep","600"]}],"owner":"bob","given":[{"on":"cpu","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"}}],"deadline":1795361511.2251747,"checkpoint":{"restart":300.0}}','[{"pool":"cpu","variant":"cpu","chips":1,"topology":"","seconds":{"value":600.0,"low":600.0,"high":600.0,"evidence":"given","because":"as given, without low and high: taken as exact"},"usd_hour":1.0,"watts":50.0,"note":"given for cpu"}]','[]',0.0,0.0,'cpu: 0.167 USD, starts in 10.0 min: waits',0,NULL,'cpu',0.0,0,1.79510231122517466542e+09,'root','');
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "meta" VALUES('uid','m8gz54e4oh');
INSERT INTO "meta" VALUES('version','3');
INSERT INTO "meta" VALUES('home:local','{"mark": "56fb15bd2858433f8b7aade02e88f139", "path": "/recorded/attempts/m8gz54e4oh"}');
INSERT INTO "meta" VALUES('home:routers of recorded-host','{"mark": "56fb15bd2858433f8b7aade02e88f139", "path": "/recorded/attempts/m8gz54e4oh"}');
CREATE TABLE pools (
        name TEXT PRIMARY KEY,
        drained INTEGER NOT NULL,
        reason TEXT NOT NULL,
        since DOUBLE PRECISION NOT NULL
    );
CREATE TABLE quarantine (
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        at DOUBLE PRECISION NOT NULL,
        reason TEXT NOT NULL,
        content TEXT NOT NULL,
        PRIMARY KEY (kind, id, at)
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
INSERT INTO "routers" VALUES('recorded-host-1','recorded-host',14099,'cheapest',1.7951023150916366577e+09,1.79510235779796361926e+09,NULL);
CREATE INDEX jobs_open ON jobs (id) WHERE state IN ('running', 'pending');
CREATE INDEX jobs_changed ON jobs (changed);
CREATE INDEX attempts_ended ON attempts (ended);
CREATE UNIQUE INDEX attempts_under_way ON attempts (job_id) WHERE state IN ('intended', 'running', 'submitted');
CREATE INDEX attempts_held ON attempts (pool, chips) WHERE state IN ('intended', 'running', 'submitted');
CREATE INDEX decisions_job ON decisions (job_id, id);
CREATE INDEX events_job ON events (job_id, id);
CREATE TRIGGER audit_no_update BEFORE update ON audit BEGIN SELECT RAISE(ABORT, 'rows of audit are never changed or removed'); END;
CREATE TRIGGER audit_no_delete BEFORE delete ON audit BEGIN SELECT RAISE(ABORT, 'rows of audit are never changed or removed'); END;
CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE chain = NEW.chain AND number = NEW.number) BEGIN SELECT RAISE(ABORT, 'rows of audit are never changed or removed'); END;
COMMIT;
