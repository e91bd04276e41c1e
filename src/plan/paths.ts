/** Path questions answered from the text alone. All paths are absolute and normalised, without a slash at the end. */

export function isWithin(path: string, ancestor: string): boolean {
  if (ancestor === '/') return true;
  return path.startsWith(ancestor) && (path.length === ancestor.length || path.charCodeAt(ancestor.length) === 47);
}

export function isBelow(path: string, ancestor: string): boolean {
  return path !== ancestor && isWithin(path, ancestor);
}

export function isWithinAny(path: string, ancestors: Iterable<string>): boolean {
  for (const ancestor of ancestors) {
    if (isWithin(path, ancestor)) return true;
  }
  return false;
}

export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** A path as it can be shown in one line of a message. */
export function shownPath(path: string): string {
  const cut = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  return cut.replace(/[\u0000-\u001f\u007f\u2028\u2029]/g, (character) => JSON.stringify(character).slice(1, -1));
}
