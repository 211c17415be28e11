-- What gl-close gives for one month, written a second time, by hand, in SQL.
-- Reads the tables journal_lines, accounts, fx_rates and budgets; $period is "2026-01", $first_day its first day.
-- Returns the rows of "Publish closed ledger" and, with row_kind "test entry", those that it leaves out.
WITH rate AS (
    SELECT from_currency, rate
    FROM fx_rates
    WHERE to_currency = 'USD' AND rate_type = 'closing'
      AND _period_from <= $first_day::DATE AND (_period_to IS NULL OR $first_day::DATE < _period_to)
),
line AS (
    SELECT
        CASE WHEN contains(j.description, 'TEST') THEN 'test entry' ELSE 'line' END AS row_kind,
        j.journal_id, j.line_number, j.posting_date,
        CASE WHEN j.account_code = '5210' AND j.cost_center LIKE 'P%' THEN '5290' ELSE j.account_code END AS account_code,
        a.account_type, j.cost_center, j.description, j.currency, j.amount_local,
        CASE WHEN j.account_code = '5210' AND j.cost_center LIKE 'P%' THEN 'projects' ELSE j.category END AS category,
        CASE WHEN j.currency = 'USD' THEN j.amount_local
             ELSE CAST(round(j.amount_local * r.rate, 2) AS DECIMAL(18, 2)) END AS amount_usd
    FROM journal_lines j
    LEFT JOIN accounts a ON a.account_code = j.account_code
    LEFT JOIN rate r ON r.from_currency = j.currency
    WHERE j._period = $period
),
total AS (
    SELECT 'total' AS row_kind, account_type, sum(amount_usd) AS total_usd, count(journal_id) AS line_count
    FROM line WHERE row_kind = 'line' GROUP BY account_type
),
budget AS (
    SELECT 'budget' AS row_kind, b.account_code, a.account_type, b.cost_center, sum(b.amount_usd) AS amount_usd
    FROM budgets b LEFT JOIN accounts a ON a.account_code = b.account_code
    WHERE b._period = $period AND b.status = 'approved'
    GROUP BY b.account_code, a.account_type, b.cost_center
)
FROM line UNION ALL BY NAME FROM total UNION ALL BY NAME FROM budget
