/** The first characters of a text, as a text of its own: V8 keeps all of a text for a slice of it. */
export function cutText(text: string, characters: number): string {
  return text.length <= characters ? text : Buffer.from(text.slice(0, characters), 'utf16le').toString('utf16le');
}
