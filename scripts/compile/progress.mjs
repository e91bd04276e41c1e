/** One line that is rewritten on a terminal; elsewhere only what is worth keeping. */
export function createProgress(stream = process.stderr) {
  const live = stream.isTTY === true;
  const clear = live ? '\r\x1b[K' : '';
  return {
    /** A step that the next one replaces. */
    step(text) {
      if (live) stream.write(`${clear}${text.slice(0, (stream.columns ?? 80) - 1)}`);
    },
    /** A line that stays. */
    line(text) {
      stream.write(`${clear}${text}\n`);
    },
  };
}
