/**
 * Output of lanes that run at the same time: the first that is not over is shown live, the others wait for their turn.
 * @param {number} count how many lanes
 * @param {(chunk: Buffer | string) => void} write
 */
export function takeTurns(count, write) {
  const waiting = Array.from({ length: count }, () => []);
  const over = new Array(count).fill(false);
  let first = 0;
  return (lane) => ({
    write(chunk) {
      if (lane === first) write(chunk);
      else waiting[lane].push(chunk);
    },
    end() {
      over[lane] = true;
      while (over[first]) {
        first += 1;
        for (const chunk of waiting[first]?.splice(0) ?? []) write(chunk);
      }
    },
  });
}
