//! What the tables of a schema take.

/// The bytes that the tables of the schema and their indexes use, without what deleted and replaced rows left in their files.
///
/// A vacuum keeps that for later rows of the table and seldom gives it back, and only an extension tells how much it is. So rows
/// are counted by the statistics: those that live, by their mean width, with 32 bytes for header, pointer and alignment;
/// chunks of long values (TOAST) as full ones, which have 2 kB; indexes by the part of the table's file that is in use. No part
/// counts for more than its file, and a table that was neither vacuumed nor analyzed since the statistics were begun counts
/// for its files.
pub(super) const IN_USE: &str = "
    SELECT CAST(sum(
        least(heap, lives) + least(toast, chunks) + indexes * CASE WHEN heap > lives THEN lives / heap ELSE 1 END
    ) AS bigint)
    FROM (
        SELECT
            f.heap, f.toast, f.indexes,
            CASE WHEN seen.rows THEN coalesce(pg_stat_get_live_tuples(c.oid) * (w.width + 32), f.heap) ELSE f.heap END
                AS lives,
            CASE WHEN seen.chunks THEN pg_stat_get_live_tuples(c.reltoastrelid) * 2032 ELSE f.toast END AS chunks
        FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace
        CROSS JOIN LATERAL (
            SELECT
                CAST(pg_table_size(c.oid) - t.toast AS numeric) AS heap, t.toast,
                CAST(pg_indexes_size(c.oid) AS numeric) AS indexes
            FROM (
                SELECT CAST(coalesce(pg_total_relation_size(nullif(c.reltoastrelid, 0)), 0) AS numeric) AS toast
            ) t
        ) f
        CROSS JOIN LATERAL (
            SELECT CAST(sum(s.avg_width * (1 - s.null_frac)) AS numeric) AS width
            FROM pg_stats s WHERE s.schemaname = n.nspname AND s.tablename = c.relname
        ) w
        CROSS JOIN LATERAL (
            SELECT bool_or(r.id = c.oid) AS rows, bool_or(r.id = c.reltoastrelid) AS chunks
            FROM (VALUES (c.oid), (c.reltoastrelid)) r (id)
            WHERE coalesce(
                pg_stat_get_last_vacuum_time(r.id), pg_stat_get_last_autovacuum_time(r.id),
                pg_stat_get_last_analyze_time(r.id), pg_stat_get_last_autoanalyze_time(r.id)
            ) IS NOT NULL
        ) seen
        WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'm')
    ) tables";
