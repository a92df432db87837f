-- name: secure delete
select secure_delete from pragma_secure_delete;

-- name: overwrite
pragma secure_delete = on;

-- name: no overwrite
pragma secure_delete = off;

-- name: checkpoint
pragma wal_checkpoint(truncate);

-- Erased rows have the reason erased, and no other row can have that reason. Erased rows are
-- skipped.

-- name: erasable rows
select i.number, s.consumer, s.source, i.id, i.long_id
from {prefix}inbox i join {prefix}scopes s on s.number = i.scope
where i.number > ?1 and i.reason <> 'erased'{filter} order by i.number limit ?2;

-- name: erasable results
select r.scope, r.id, s.consumer, s.source, m.long_id, m.at
from {prefix}results r join {prefix}scopes s on s.number = r.scope
left join {prefix}markers m on m.scope = r.scope and m.id = r.id
where (r.scope, r.id) > (?1, ?2){filter} order by r.scope, r.id limit ?3;

-- name: erasable keys
select s.key, s.consumer, s.source, s.id, s.first_at / 1000
from {prefix}keys s where s.key > ?1 and s.result is not null{filter} order by s.key limit ?2;

-- name: identity rows
select i.number, s.consumer, s.source, i.id, i.long_id, i.state, i.reason, i.type, i.envelope, i.received_at
from {prefix}scopes s join {prefix}inbox i on i.scope = s.number
where s.consumer = ?1 and s.source = ?2 and i.id in (?3, ?4) order by i.number;

-- name: caused rows
select i.number, s.consumer, s.source, i.id, i.long_id, i.state, i.reason, i.type, i.envelope, i.received_at
from {prefix}inbox i join {prefix}scopes s on s.number = i.scope
where i.cause = ?1 order by i.number;

-- name: lock row
select i.state from {prefix}inbox i where i.number = ?1 and i.state in ('COMPLETED', 'DISCARDED');

-- name: erase row
update {prefix}inbox set reason = 'erased', payload = null,
  body_removed_at = coalesce(body_removed_at, cast(unixepoch('subsec') * 1000 as integer)),
  key = null, envelope = ?2, schema = '', broker_id = '', first_error = '', last_error = '', steps = null, line = null, place = null,
  revision = revision + 1, changed_at = cast(unixepoch('subsec') * 1000 as integer)
where number = ?1;

-- name: erase edits
update {prefix}edits set body = null where row = ?1 and body is not null;

-- name: erase results
delete from {prefix}results
where scope in (select s.number from {prefix}scopes s where s.consumer = ?1 and s.source = ?2) and id = ?3;

-- name: erase key
update {prefix}keys set result = null where key = ?1 and result is not null;

-- name: vacuum
vacuum;
