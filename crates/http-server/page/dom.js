// Creates elements. Texts are never parsed as HTML.

/** An element with attributes and children; a child is an element or a text. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (attribute.startsWith('on')) made.addEventListener(attribute.slice(2), value);
    else if (value !== false && value != null) made.setAttribute(attribute, value === true ? '' : value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

export const byId = (id) => document.getElementById(id);
