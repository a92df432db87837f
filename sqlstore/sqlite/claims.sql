-- Claims are passed one by one, because SQLite has only one writer.

-- Due rows are found through the consumer, in the order in which they are due. A search in each
-- scope of the consumer would take longer the more sources the consumer has.

-- name: any due
select exists (
  select 1 from {prefix}inbox i
  where i.consumer = ?1 and i.state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED')
    and i.due_at <= cast(unixepoch('subsec') * 1000 as integer));

-- name: claimable
select {columns}, i.state = 'IN_PROGRESS' or i.started > i.finished, i.state = 'BLOCKED'
from {prefix}inbox i left join {prefix}scopes s on s.number = i.scope
where i.consumer = ?2 and i.state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED')
  and i.due_at <= cast(unixepoch('subsec') * 1000 as integer)
  and (?3 = '' or i.number in (select value from json_each(?3)))
order by i.due_at, i.number limit ?4;

-- name: take
update {prefix}inbox set state = 'IN_PROGRESS', token = ?1, revision = revision + 1,
  started = max(started, finished + (state = 'IN_PROGRESS')),
  changed_at = cast(unixepoch('subsec') * 1000 as integer),
  due_at = cast(unixepoch('subsec') * 1000 as integer) + ?2,
  locked_until = cast(unixepoch('subsec') * 1000 as integer) + ?2
where number = ?3;

-- Cut ahead corrects rows that were written while the clock was ahead. The times of such a row are
-- in the future: changed_at, and the time at which the row is due or its lease ends. Cut ahead
-- keeps the length of each wait, and lets the wait begin now. If the start of the first call is in
-- the future, it is unknown, and cut ahead writes the epoch, as start call does. Dated ahead
-- returns the number of such rows and the largest difference.

-- name: dated ahead
select count(*), coalesce(max(i.changed_at - cast(unixepoch('subsec') * 1000 as integer)), 0) from {prefix}inbox i
where i.state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED')
  and i.due_at > cast(unixepoch('subsec') * 1000 as integer) + 1000 and i.changed_at > cast(unixepoch('subsec') * 1000 as integer) + 1000
  and (?1 = '' or i.number in (select value from json_each(?1)));

-- name: cut ahead
update {prefix}inbox set changed_at = cast(unixepoch('subsec') * 1000 as integer), received_at = min(received_at, cast(unixepoch('subsec') * 1000 as integer)),
  due_at = cast(unixepoch('subsec') * 1000 as integer) + max(due_at - changed_at, 0),
  locked_until = case when locked_until is not null then cast(unixepoch('subsec') * 1000 as integer) + max(due_at - changed_at, 0) end,
  called_at = case when called_at > cast(unixepoch('subsec') * 1000 as integer) + 1000 then 0 else called_at end
where state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED')
  and due_at > cast(unixepoch('subsec') * 1000 as integer) + 1000 and changed_at > cast(unixepoch('subsec') * 1000 as integer) + 1000
  and (?1 = '' or number in (select value from json_each(?1)));

-- name: held
select {columns}, max(i.locked_until - cast(unixepoch('subsec') * 1000 as integer), 0)
from {prefix}inbox i join {prefix}scopes s on s.number = i.scope
where i.consumer = ?2 and i.state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED') and +i.state = 'IN_PROGRESS' and i.token = ?3
order by i.number;

-- Owned checks that the marker m waits for the row i, and that the row owns the marker (law 16). If
-- two rows have the content of the marker, the first row owns the marker while the first row waits.

-- name: owned
m.outcome = 2 and m.version = i.version and m.sum is i.sum and (i.conflict = x'' or not exists (
  select 1 from {prefix}inbox o where o.scope = i.scope and o.id = i.id and o.conflict = x'' and o.version = i.version
    and o.sum is i.sum and o.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED')))

-- name: look
select 1 from {prefix}inbox i join {prefix}markers m on m.scope = i.scope and m.id = i.id
where i.number = ? and i.token = ? and i.state = 'IN_PROGRESS'
  and i.locked_until > cast(unixepoch('subsec') * 1000 as integer) and {owned};

-- name: has claim
select 1 from {prefix}inbox where number = ? and token = ? and state = 'IN_PROGRESS';

-- Lease ends is the end of a row's lease. If the row was claimed while the clock was ahead, the
-- lease has its full length from now. Extend sets changed_at, so that the length of a lease can be
-- computed from the row.

-- name: lease ends
case when changed_at > cast(unixepoch('subsec') * 1000 as integer) then cast(unixepoch('subsec') * 1000 as integer) + due_at - changed_at else due_at end

-- name: extend
update {prefix}inbox set changed_at = cast(unixepoch('subsec') * 1000 as integer), due_at = max({lease ends}, cast(unixepoch('subsec') * 1000 as integer) + ?1),
  locked_until = max({lease ends}, cast(unixepoch('subsec') * 1000 as integer) + ?1)
where number = ?2 and token = ?3 and state = 'IN_PROGRESS';

-- name: start claim
update {prefix}inbox set started = started + 1, revision = revision + 1,
  changed_at = max(changed_at, cast(unixepoch('subsec') * 1000 as integer))
where number = ? and token = ? and state = 'IN_PROGRESS';

-- name: start call
update {prefix}inbox as i set calls_started = calls_started + (call_token is not ?2), call_token = ?2,
  called_at = case when called_at > cast(unixepoch('subsec') * 1000 as integer) + 1000 then 0 else coalesce(called_at, cast(unixepoch('subsec') * 1000 as integer)) end,
  revision = revision + 1, changed_at = cast(unixepoch('subsec') * 1000 as integer),
  due_at = max({lease ends}, cast(unixepoch('subsec') * 1000 as integer) + ?3),
  locked_until = max({lease ends}, cast(unixepoch('subsec') * 1000 as integer) + ?3)
where number = ?1 and token = ?2 and state = 'IN_PROGRESS' and exists (
  select 1 from {prefix}markers m where m.scope = i.scope and m.id = i.id and {owned})
returning calls_started, calls_finished, cast(unixepoch('subsec') * 1000 as integer) - called_at, emitted_at is not null;

-- name: end claim
update {prefix}inbox as i set state = ?1, token = null, locked_until = null,
  due_at = case when ?2 = 2 then cast(unixepoch('subsec') * 1000 as integer) + ?3 end,
  revision = revision + 1, changed_at = cast(unixepoch('subsec') * 1000 as integer),
  processed_at = case when ?2 = 2 then processed_at else cast(unixepoch('subsec') * 1000 as integer) end,
  started = case when ?9 < 0 then finished + ?4 else started - ?9 + ?4 end, finished = finished + ?4,
  stream = case when ?11 > 0 then ?10 else stream end, stream_version = case when ?11 > 0 then ?11 else stream_version end,
  reason = case ?5 when '' then reason else ?5 end,
  first_error = case first_error when '' then ?6 else first_error end,
  last_error = case ?6 when '' then last_error else ?6 end,
  -- The outcome of a call: 1 no call was made, 2 the outcome is unknown, 3 this call had no effect,
  -- 4 the outcomes of all calls are known.
  calls_started = calls_started - (?12 = 1 and call_token is token),
  calls_finished = case when ?12 = 4 then calls_started else calls_finished + (?12 = 3 and call_token is token) end,
  called_at = case when ?12 = 1 and call_token is token and calls_started = 1 then null else called_at end,
  call_token = case when ?12 = 0 then call_token end
where number = ?7 and token = ?8 and state = 'IN_PROGRESS' and exists (
  select 1 from {prefix}markers m where m.scope = i.scope and m.id = i.id and {owned});

-- name: end marker
update {prefix}markers set outcome = ?1, at = cast(unixepoch('subsec') * 1000 as integer)
where outcome = 2 and (scope, id) in (select i.scope, i.id from {prefix}inbox i where i.number = ?2);

-- name: reclaim
update {prefix}inbox set token = ?1, revision = revision + 1, changed_at = max(changed_at, cast(unixepoch('subsec') * 1000 as integer))
where number = ?2 and state = 'IN_PROGRESS' and token in (select value from json_each(?3));

-- name: state of
select state from {prefix}inbox where number = ?;

-- name: pending
select coalesce(sum(i.due_at <= n.now), 0), coalesce(sum(coalesce(i.due_at > n.now, 1) and i.state not in ('IN_PROGRESS', 'BLOCKED')), 0),
  coalesce(sum(coalesce(i.due_at > n.now, 1) and i.state = 'IN_PROGRESS'), 0),
  coalesce(sum(coalesce(i.due_at > n.now, 1) and i.state = 'BLOCKED'), 0),
  coalesce(min(case when i.due_at > n.now and i.state not in ('IN_PROGRESS', 'BLOCKED') then i.due_at end) - n.now, 0),
  coalesce(n.now - min(i.received_at), 0)
from (select cast(unixepoch('subsec') * 1000 as integer) as now) n
cross join {prefix}inbox i
where i.consumer = ?1 and i.state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED');

-- name: requeue rows
update {prefix}inbox as i set state = ?2, revision = i.revision + 1, changed_at = cast(unixepoch('subsec') * 1000 as integer),
  processed_at = null, token = null, locked_until = null, due_at = cast(unixepoch('subsec') * 1000 as integer),
  place = case when i.state = 'DEAD_LETTERED' then null else i.place end -- a dead-lettered row is not in a line
from json_each(?1) a
where i.number = a.value ->> 'n' and i.revision = a.value ->> 'r';

-- The rows are materialized so that SQLite finds the marker of each row by its key. Otherwise
-- SQLite would read all markers, and the rows for each marker.

-- name: markers wait
with asked as materialized (
  select i.scope, i.id, i.version, i.sum from json_each(?1) a cross join {prefix}inbox i where i.number = a.value ->> 'n'
)
update {prefix}markers as m set outcome = 2, version = a.version, sum = a.sum, at = cast(unixepoch('subsec') * 1000 as integer)
from asked a where m.scope = a.scope and m.id = a.id;
