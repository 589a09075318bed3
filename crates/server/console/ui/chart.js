// Charts over time: a large one drawn by uPlot, which is loaded on first use, and small lines as SVG.

import { html, useEffect, useRef } from '../preact.js';
import { countShort, dayInUtc, when } from '../format.js';

let library = null;

function loadLibrary() {
  library ??= import('../vendor/uplot-1.6.32.js').then((module) => module.default);
  return library;
}

const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const two = (value) => String(value).padStart(2, '0');
const dayOf = (date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;

/** Labels of the time axis: hours, with the day below the first label and at each change of day. */
function ticks(_chart, splits, _axis, _space, step) {
  let before = null;
  return splits.map((seconds) => {
    const date = new Date(seconds * 1000);
    const day = dayOf(date);
    if (step >= 86400) return day.slice(5);
    const label = `${two(date.getHours())}:${two(date.getMinutes())}${day === before ? '' : `\n${day.slice(5)}`}`;
    before = day;
    return label;
  });
}

const DAY_SECONDS = 86_400;

/** The time axis and the label of the pointer's time. */
const LOCAL = { axis: { values: ticks }, label: (seconds) => when(seconds * 1000).slice(0, 16) };

/** The same for values of whole days, which begin at midnight UTC. */
const DAYS = {
  axis: {
    splits: (_chart, _axis, low, high, step) => {
      const days = Math.ceil(step / DAY_SECONDS) * DAY_SECONDS;
      const first = Math.ceil(low / days) * days;
      return Array.from({ length: Math.max(0, Math.floor((high - first) / days) + 1) }, (_, index) => first + index * days);
    },
    values: (_chart, splits) => splits.map((seconds) => dayInUtc(seconds * 1000).slice(5)),
  },
  label: (seconds) => `${dayInUtc(seconds * 1000)} UTC`,
};

/** Labels of the value axis, as short numbers. */
const short = (format) => (_chart, splits) => splits.map((value) => (format ? format(value) : countShort(value)));

/** The options of a chart, with the colours of the theme, because a canvas cannot use a style sheet. */
function options(series, time, width, height, brush) {
  const axis = { stroke: token('--muted'), grid: { stroke: token('--line'), width: 1 }, ticks: { show: false }, font: '12px system-ui' };
  return {
    width, height,
    cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
    legend: { live: true },
    scales: { x: { time: true }, y: { range: (_chart, low, high) => [Math.min(0, (low ?? 0) * 1.1), high > 0 ? high * 1.1 : 1] } },
    axes: [{ ...axis, ...time.axis }, { ...axis, size: 60, values: short(series[0]?.value) }],
    series: [{ label: 'Time', value: (_chart, seconds) => (seconds === null || seconds === undefined ? '–' : time.label(seconds)) }, ...series.map(({ label, color, value }) => ({
      label, stroke: token(color), fill: `${token(color)}22`, width: 1.5, points: { show: false },
      value: (_chart, number) => (number === null || number === undefined ? '–' : value ? value(number) : number.toLocaleString('en')),
    }))],
    hooks: {
      setSelect: [(chart) => {
        if (chart.select.width < 8) return;
        brush?.(chart.posToVal(chart.select.left, 'x') * 1000, chart.posToVal(chart.select.left + chart.select.width, 'x') * 1000);
        chart.setSelect({ width: 0, height: 0 }, false);
      }],
    },
  };
}

/**
 * A chart of `series` (`{label, color, values, value}`) over `times` in Unix milliseconds. `brush(from, to)` is
 * called when a time span is selected with the pointer.
 */
export function Chart({ times, series, height = 260, brush, label }) {
  const box = useRef(null);
  const key = JSON.stringify([times[0], times.length, series.map(({ label, values }) => [label, values])]);
  const isDays = times.length > 1 && times[1] - times[0] >= DAY_SECONDS * 1000;
  useEffect(() => {
    let chart = null;
    let gone = false;
    const resize = new ResizeObserver(([entry]) => chart?.setSize({ width: entry.contentRect.width, height }));
    const draw = async () => {
      const UPlot = await loadLibrary();
      if (gone) return;
      chart?.destroy();
      const data = [times.map((at) => at / 1000), ...series.map(({ values }) => values)];
      chart = new UPlot(options(series, isDays ? DAYS : LOCAL, box.current.clientWidth, height, brush), data, box.current);
    };
    draw();
    resize.observe(box.current);
    window.addEventListener('themechange', draw);
    return () => {
      gone = true;
      resize.disconnect();
      window.removeEventListener('themechange', draw);
      chart?.destroy();
    };
  }, [key, height]);
  return html`<div class="chart" ref=${box} role="img" aria-label=${label}></div>`;
}

/** A line without axes. */
export function Spark({ values, label }) {
  if (values.length < 2) return null;
  const top = Math.max(...values, 1e-9);
  const points = values.map((value, index) => `${((index * 100) / (values.length - 1)).toFixed(2)} ${(34 - (value / top) * 32).toFixed(2)}`);
  return html`<svg class="spark" viewBox="0 0 100 36" preserveAspectRatio="none" role="img" aria-label=${label}>
    <path class="area" d=${`M0 36L${points.join('L')}L100 36Z`} /><path d=${`M${points.join('L')}`} />
  </svg>`;
}
