-- Walks of the reaper through the table of markers: where the last one has come to, when a
-- whole one ended last, and up to where that removed what was due.
alter table {prefix}retention add column walk_block bigint not null default 0, add column walked_at timestamptz, add column walked_to timestamptz;

-- It looks for what is due in the order in which the table lies, and not by time any more.
drop index if exists {prefix}markers_at;
